// Reads YAML as Kubernetes' tools do, for comparison with starling.objects.
//
// Each line on stdin is one input, base64; each line on stdout is its answer: the JSON of every document that is
// not null, or an error. Documents are split as kubectl splits them; a document that is valid JSON is read as JSON.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

type answer struct {
	Documents []json.RawMessage `json:"documents"`
	Error     string            `json:"error,omitempty"`
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		text, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(line)))
		if err != nil {
			panic(err)
		}
		if err := out.Encode(read(text)); err != nil {
			panic(err)
		}
	}
}

func read(text []byte) answer {
	documents := []json.RawMessage{}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		chunk, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return answer{Documents: documents}
		}
		if err != nil {
			return answer{Error: err.Error()}
		}
		value, err := toJSON(chunk)
		if err != nil {
			return answer{Error: err.Error()}
		}
		if !bytes.Equal(value, []byte("null")) {
			documents = append(documents, value)
		}
	}
}

func toJSON(chunk []byte) ([]byte, error) {
	if !utilyaml.IsJSONBuffer(chunk) || !json.Valid(chunk) {
		return yaml.YAMLToJSON(chunk)
	}
	var value interface{}
	if err := utiljson.Unmarshal(chunk, &value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}
