// SPDX-License-Identifier: Apache-2.0
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"strings"
	"time"

	"k8s.io/dynamic-resource-allocation/structured"
)

// benchSteps is where a search is given up that does not end.
const benchSteps = 1_000_000

// timed is what one run takes.
func timed(run func()) int64 {
	start := time.Now()
	runs := int64(0)
	for ; runs == 0 || time.Since(start) < 300*time.Millisecond; runs++ {
		run()
	}
	return time.Since(start).Nanoseconds() / runs
}

// benchmark prints each shape with its outcome and what one run of the newest
// allocator took: from objects in memory on, and with what claims hold counted
// before.
// Shapes are left out whose names do not begin as asked.
func benchmark(out *bufio.Writer, only string) {
	structured.EnableAllocators(newest)
	for _, shape := range shapes() {
		if !strings.HasPrefix(shape.name, only) {
			continue
		}
		w := shape.world
		w.ID, w.Default = shape.name, newest
		all := timed(func() { w.Expect = run(w, benchSteps) })
		ctx := &stepContext{Context: context.Background(), limit: benchSteps}
		allocator, err := structured.NewAllocator(ctx, w.Features, allocatedState(w), classLister(w.Classes),
			w.Slices, celCache(w.Features))
		if err != nil {
			panic(err)
		}
		search := timed(func() {
			ctx.steps = 0
			allocate(ctx, allocator, w)
		})
		line, err := json.Marshal(struct {
			*World
			All    int64 `json:"all"`
			Search int64 `json:"search"`
		}{w, all, search})
		if err != nil {
			panic(err)
		}
		out.Write(append(line, '\n'))
		out.Flush()
	}
}
