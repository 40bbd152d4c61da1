package ecs_test

import (
	sdk "github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// taskDefinition is what services need to be made; none of it runs.
var taskDefinition = &api.RegisterTaskDefinitionInput{
	Family: sdk.String("runner"), ContainerDefinitions: []types.ContainerDefinition{{
		Name: sdk.String("runner"), Image: sdk.String("runner"), Memory: sdk.Int32(512),
	}},
}
