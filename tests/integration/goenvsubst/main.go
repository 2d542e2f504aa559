// Puts variables into texts and objects as Flux does, for comparison with starling.rendering.
//
// Each line on stdin is one question, JSON; each line on stdout is its answer: the result, or an error. A text is
// expanded by Flux's envsubst. An object (answered with the YAML it was read from) goes through what SubstituteVariables of github.com/fluxcd/pkg/kustomize does
// with it: written as YAML, expanded with values that have no line breaks, and read again; that function itself
// would bring a whole Kubernetes client along.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/fluxcd/pkg/envsubst"
	"sigs.k8s.io/yaml"
)

type question struct {
	Text      *string           `json:"text"`
	Object    json.RawMessage   `json:"object"`
	Variables map[string]string `json:"variables"`
	Strict    bool              `json:"strict"`
}

type answer struct {
	Text   string          `json:"text"`
	Object json.RawMessage `json:"object,omitempty"`
	Error  string          `json:"error,omitempty"`
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked question
		if err := json.Unmarshal(line, &asked); err != nil {
			panic(err)
		}
		answered, err := respond(asked)
		if err != nil {
			answered = answer{Error: err.Error()}
		}
		if err := out.Encode(answered); err != nil {
			panic(err)
		}
	}
}

// respond turns a panic, too, into an error: an offset and a length that overflow make one.
func respond(asked question) (answered answer, err error) {
	defer func() {
		if found := recover(); found != nil {
			err = fmt.Errorf("panic: %v", found)
		}
	}()
	if asked.Text != nil {
		text, err := expand(*asked.Text, asked.Variables, asked.Strict)
		return answer{Text: text}, err
	}
	return substitute(asked.Object, asked.Variables, asked.Strict)
}

func expand(text string, variables map[string]string, strict bool) (string, error) {
	expanded, err := envsubst.Eval(text, func(name string) (string, bool) {
		value, set := variables[name]
		return value, set || !strict
	})
	if err == nil && !utf8.ValidString(expanded) {
		err = errors.New("half of a character is left")
	}
	return expanded, err
}

func substitute(object []byte, variables map[string]string, strict bool) (answered answer, err error) {
	values := map[string]string{}
	for name, value := range variables {
		values[name] = strings.ReplaceAll(value, "\n", "")
	}
	written, err := yaml.JSONToYAML(object)
	if err != nil {
		return answer{}, err
	}
	expanded, err := expand(string(written), values, strict)
	if err != nil {
		return answer{}, err
	}
	result, err := yaml.YAMLToJSON([]byte(expanded))
	return answer{Text: expanded, Object: result}, err
}
