// SPDX-License-Identifier: Apache-2.0
package main

import (
	"bufio"
	"encoding/json"
	"time"

	"k8s.io/dynamic-resource-allocation/structured"
)

// benchSteps is where a search is given up that does not end.
const benchSteps = 1_000_000

// benchmark prints each shape with its outcome and what one run of the newest
// allocator took, from objects in memory on.
func benchmark(out *bufio.Writer) {
	structured.EnableAllocators(newest)
	for _, shape := range shapes() {
		start := time.Now()
		w := shape.world
		w.ID, w.Default = shape.name, newest
		runs := 0
		for ; runs == 0 || time.Since(start) < 500*time.Millisecond; runs++ {
			w.Expect = run(w, benchSteps)
		}
		line, err := json.Marshal(struct {
			*World
			Nanoseconds int64 `json:"nanoseconds"`
		}{w, time.Since(start).Nanoseconds() / int64(runs)})
		if err != nil {
			panic(err)
		}
		out.Write(append(line, '\n'))
	}
}
