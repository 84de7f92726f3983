// A workflow of a team that writes Go: it calls the agents' Nexus service by its names alone.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

func Caller(ctx workflow.Context, endpoint, operation string, given map[string]any) (any, error) {
	agents := workflow.NewNexusClient(endpoint, "Agents")
	options := workflow.NexusOperationOptions{ScheduleToCloseTimeout: 2 * time.Minute}
	var answer any
	err := agents.ExecuteOperation(ctx, operation, given, options).Get(ctx, &answer)
	return answer, err
}

func main() {
	address, namespace, endpoint, operation := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	given := map[string]any{}
	if err := json.Unmarshal([]byte(os.Args[5]), &given); err != nil {
		log.Fatalln(err)
	}
	c, err := client.Dial(client.Options{HostPort: address, Namespace: namespace})
	if err != nil {
		log.Fatalln(err)
	}
	defer c.Close()
	queue := "go-" + endpoint
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflow(Caller)
	if err := w.Start(); err != nil {
		log.Fatalln(err)
	}
	defer w.Stop()
	run, err := c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{TaskQueue: queue}, Caller, endpoint, operation, given)
	if err != nil {
		log.Fatalln(err)
	}
	var answer any
	if err := run.Get(context.Background(), &answer); err != nil {
		log.Fatalln(err)
	}
	said, _ := json.Marshal(answer)
	fmt.Println(string(said))
}
