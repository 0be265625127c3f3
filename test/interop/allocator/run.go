// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// newest is the allocator that has every feature.
const newest = "experimental"

var allocators = []string{"stable", "incubating", newest}

// stepContext counts the steps of a search, which asks it once a step, and ends
// it after a number of them rather than after a time.
type stepContext struct {
	context.Context
	steps, limit int
}

func (c *stepContext) Err() error {
	c.steps++
	if c.steps > c.limit {
		return context.DeadlineExceeded
	}
	return nil
}

// stepLimit lets large worlds take about as long as small ones.
func stepLimit(w *World) int { return max(300, min(5000, 60000/(1+deviceCount(w)))) }

type classLister []*resourceapi.DeviceClass

func (l classLister) List() ([]*resourceapi.DeviceClass, error) { return l, nil }

func (l classLister) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range l {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, errors.New("not found")
}

// compiled are the expressions compiled so far, by what may be in them.
var compiled = map[cel.Features]*cel.Cache{}

func celCache(features structured.Features) *cel.Cache {
	key := cel.Features{EnableConsumableCapacity: features.ConsumableCapacity,
		EnableListTypeAttributes: features.ListTypeAttributes}
	if compiled[key] == nil {
		compiled[key] = cel.NewCache(1000, key)
	}
	return compiled[key]
}

// runWith asks one allocator; nil if it does not have the features.
func runWith(w *World, allocator string) *Outcome {
	structured.EnableAllocators(allocator)
	return run(w, stepLimit(w))
}

func run(w *World, limit int) *Outcome {
	ctx := &stepContext{Context: context.Background(), limit: limit}
	chosen, err := structured.NewAllocator(ctx, w.Features, allocatedState(w), classLister(w.Classes),
		patched(w), celCache(w.Features))
	if err != nil {
		return nil
	}
	return allocate(ctx, chosen, w)
}

func allocate(ctx *stepContext, allocator structured.Allocator, w *World) (outcome *Outcome) {
	outcome = &Outcome{}
	defer func() {
		if failure := recover(); failure != nil {
			outcome = &Outcome{Result: "panic", Error: fmt.Sprint(failure)}
		}
		outcome.Steps = ctx.steps
	}()
	allocations, err := allocator.Allocate(ctx, w.Node, w.Claims)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		outcome.Result = resultInterrupted
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		outcome.Result, outcome.Error = resultHereNotNow, err.Error()
	case err != nil:
		outcome.Result, outcome.Error = resultError, err.Error()
	case allocations == nil:
		outcome.Result = resultNone
	default:
		outcome.Result, outcome.Allocations = resultSolved, allocations
		numberShares(allocations)
	}
	return outcome
}

// numberShares replaces share IDs, which are by chance.
func numberShares(allocations []resourceapi.AllocationResult) {
	number := 0
	for i := range allocations {
		results := allocations[i].Devices.Results
		for j := range results {
			if results[j].ShareID != nil {
				number++
				results[j].ShareID = pointer(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", number)))
			}
		}
	}
}

// text is what has to be equal: not the steps, nor the words of an error.
func (o *Outcome) text() string {
	encoded, err := json.Marshal(o.Allocations)
	if err != nil {
		panic(err)
	}
	return o.Result + string(encoded)
}

// judge fills in the outcomes of w.
func judge(w *World) {
	w.Default, w.Variants, w.Decides, w.AsCharged = "", nil, nil, nil
	w.Expect = runWith(w, newest)
	if len(w.Charges) > 0 {
		w.AsCharged = runWith(charged(w), newest)
	}
	for _, name := range allocators {
		outcome := w.Expect
		if name != newest {
			outcome = runWith(w, name)
		}
		if outcome == nil {
			continue
		}
		if w.Default == "" {
			w.Default = name
		}
		if outcome.text() != w.Expect.text() {
			if w.Variants == nil {
				w.Variants = map[string]*Outcome{}
			}
			w.Variants[name] = outcome
		}
	}
}
