// Command schemes is the child process of bench/schemes for the ways to close orders whose
// libraries are in this module alone. It is told what to do in its environment; by hand,
// run bench/schemes.
package main

import (
	"fmt"
	"os"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// here are the schemes of this program.
var here = map[string]scheme.Factory{
	"rabbitmq-dlx":   newRabbitDLX,
	"rabbitmq-table": newRabbitTable,
	"asynq":          newAsynq,
}

func main() {
	status, ok := scheme.Work(here)
	if !ok {
		fmt.Fprintln(os.Stderr, "schemes: this is the child of another program: go run ./bench/schemes, in the folder above")
		status = 2
	}
	os.Exit(status)
}
