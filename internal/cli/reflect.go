package cli

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// missingMethods are those of the contract, as this command knows it, that the server does not have.
func missingMethods(ctx context.Context, conn *grpc.ClientConn) ([]string, error) {
	stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		return nil, err
	}
	name := remudav1.FleetService_ServiceDesc.ServiceName
	request := &reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: name}}
	if err := stream.Send(request); err != nil {
		return nil, err
	}
	resp, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	_ = stream.CloseSend() // the answer is there
	return missing(known(), offered(resp.GetFileDescriptorResponse().GetFileDescriptorProto())), nil
}

// known are the methods of FleetService that this command was built with.
func known() []string {
	var names []string
	methods := remudav1.File_remuda_v1_fleet_service_proto.Services().ByName("FleetService").Methods()
	for i := range methods.Len() {
		names = append(names, string(methods.Get(i).Name()))
	}
	return names
}

// offered are the methods of FleetService in the files of a server.
func offered(files [][]byte) []string {
	var names []string
	for _, data := range files {
		var file descriptorpb.FileDescriptorProto
		if proto.Unmarshal(data, &file) != nil {
			continue
		}
		for _, service := range file.GetService() {
			for _, method := range service.GetMethod() {
				if service.GetName() == "FleetService" {
					names = append(names, method.GetName())
				}
			}
		}
	}
	return names
}

func missing(known, offered []string) []string {
	return slices.DeleteFunc(known, func(name string) bool { return slices.Contains(offered, name) })
}
