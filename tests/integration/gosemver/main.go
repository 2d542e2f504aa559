// Picks versions as Flux does, for comparison with starling.versions.
//
// Each line on stdin is a JSON question, {"names": […], "range": "…"}; each line on stdout says which of the names
// count as versions, and which are in the range; or that the range is refused.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"

	"github.com/Masterminds/semver/v3"
)

type question struct {
	Names []string `json:"names"`
	Range string   `json:"range"`
}

type answer struct {
	Versions []string `json:"versions"`
	Within   []string `json:"within"`
	Refused  bool     `json:"refused"`
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var asked question
		if err := json.Unmarshal(in.Bytes(), &asked); err != nil {
			panic(err)
		}
		if err := out.Encode(pick(asked)); err != nil {
			panic(err)
		}
	}
}

func pick(asked question) answer {
	found := answer{Versions: []string{}, Within: []string{}}
	constraint, err := semver.NewConstraint(asked.Range)
	found.Refused = err != nil
	for _, name := range asked.Names {
		// As Flux: strict, but for one leading v.
		version, err := semver.StrictNewVersion(strings.TrimPrefix(name, "v"))
		if err != nil {
			continue
		}
		found.Versions = append(found.Versions, name)
		if constraint != nil && constraint.Check(version) {
			found.Within = append(found.Within, name)
		}
	}
	return found
}
