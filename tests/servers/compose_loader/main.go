// Prints a compose file as JSON, read by the code that `docker compose config` reads it by: variables are filled in from
// the environment and from the `.env` beside it, and each service's environment has the lines of its env_file.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	document, err := read(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(string(document))
}

func read(files []string) ([]byte, error) {
	everyProfile := cli.WithProfiles([]string{"*"})
	options, err := cli.NewProjectOptions(files, cli.WithOsEnv, cli.WithEnvFiles(), cli.WithDotEnv, everyProfile)
	if err != nil {
		return nil, err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return nil, err
	}
	project, err = project.WithServicesEnvironmentResolved(true)
	if err != nil {
		return nil, err
	}
	return project.MarshalJSON()
}
