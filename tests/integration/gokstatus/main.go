// Computes objects' status as kubernetes-sigs/cli-utils does, for comparison with starling.engine.health.
//
// Each line on stdin is one object, JSON; each line on stdout is its answer: status and message, or an error. Where
// Compute panics, the panic is the error.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type answer struct {
	Status  string `json:"status"`
	Message string `json:"message"`
	Error   string `json:"error,omitempty"`
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		// As the API machinery reads objects: whole numbers are int64, others float64.
		object := map[string]interface{}{}
		if err := utiljson.Unmarshal(line, &object); err != nil {
			panic(err)
		}
		if err := out.Encode(compute(object)); err != nil {
			panic(err)
		}
	}
}

func compute(object map[string]interface{}) (found answer) {
	defer func() {
		if problem := recover(); problem != nil {
			found = answer{Error: fmt.Sprint(problem)}
		}
	}()
	result, err := status.Compute(&unstructured.Unstructured{Object: object})
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Status: result.Status.String(), Message: result.Message}
}
