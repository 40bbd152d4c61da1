package server

import (
	"strings"

	"github.com/remuda-ci/remuda/internal/policy"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// access is who may call a method.
type access struct {
	// least is the role that an operator needs.
	least policy.Role
	// run lets a workflow call it, for its own run.
	run bool
	// worker lets a worker call it, for the services of its token.
	worker bool
}

// accesses says who may call each of our methods. A method that is not listed is refused to all.
var accesses = map[string]access{
	remudav1.FleetService_Provision_FullMethodName:         {policy.RoleOperator, true, false},
	remudav1.FleetService_Release_FullMethodName:           {policy.RoleOperator, true, false},
	remudav1.FleetService_Refresh_FullMethodName:           {policy.RoleOperator, false, false},
	remudav1.FleetService_HoldInstance_FullMethodName:      {policy.RoleOperator, false, false},
	remudav1.FleetService_GetInstance_FullMethodName:       {policy.RoleViewer, false, false},
	remudav1.FleetService_ListInstances_FullMethodName:     {policy.RoleViewer, false, false},
	remudav1.FleetService_ListPools_FullMethodName:         {policy.RoleViewer, false, false},
	remudav1.FleetService_WatchFleet_FullMethodName:        {policy.RoleViewer, false, false},
	remudav1.FleetService_ExplainRun_FullMethodName:        {policy.RoleViewer, true, false},
	remudav1.FleetService_TerminateInstance_FullMethodName: {policy.RoleAdmin, false, false},
	remudav1.FleetService_HoldFleet_FullMethodName:         {policy.RoleAdmin, false, false},
	remudav1.FleetService_NudgeService_FullMethodName:      {policy.RoleOperator, false, false},
	remudav1.FleetService_ListServices_FullMethodName:      {policy.RoleViewer, false, false},

	remudav1.WorkerService_SubmitJob_FullMethodName:    {policy.RoleOperator, false, true},
	remudav1.WorkerService_Heartbeat_FullMethodName:    {policy.RoleOperator, false, true},
	remudav1.WorkerService_ClaimJob_FullMethodName:     {policy.RoleOperator, false, true},
	remudav1.WorkerService_AppendJobLog_FullMethodName: {policy.RoleOperator, false, true},
	remudav1.WorkerService_FinishJob_FullMethodName:    {policy.RoleOperator, false, true},
	remudav1.WorkerService_GetJob_FullMethodName:       {policy.RoleViewer, false, true},
	remudav1.WorkerService_ListJobs_FullMethodName:     {policy.RoleViewer, false, true},
	remudav1.WorkerService_ListWorkers_FullMethodName:  {policy.RoleViewer, false, true},
}

// ours reports whether a method is of the fleet or of workers, and not of health
// or reflection, which tell nothing and are open to all.
func ours(method string) bool {
	return strings.HasPrefix(method, "/"+remudav1.FleetService_ServiceDesc.ServiceName+"/") || ofWorkers(method)
}

// ofWorkers reports whether a method is of the WorkerService.
func ofWorkers(method string) bool {
	return strings.HasPrefix(method, "/"+remudav1.WorkerService_ServiceDesc.ServiceName+"/")
}

// short is a method's name without its service, for sentences.
func short(method string) string { return method[strings.LastIndex(method, "/")+1:] }
