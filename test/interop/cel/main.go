// SPDX-License-Identifier: Apache-2.0
//
// Judges expressions with the official library: JSON strings come in, one a line.
// For cel_test.py what became of each goes out, in the form of ../cel_peer.cc. With
// the argument `bench` the time that each takes goes out instead, in the form of
// ../../bench/cel_bench.cc --measure.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
)

func pointer[T any](value T) *T { return &value }

// exampleDevice is the one of ../../cel/example_device.h.
func exampleDevice() cel.Device {
	return cel.Device{
		Driver:                   "gpu.example.com",
		AllowMultipleAllocations: pointer(true),
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"model":       {StringValue: pointer("A100")},
			"index":       {IntValue: pointer(int64(7))},
			"flag":        {BoolValue: pointer(true)},
			"version":     {VersionValue: pointer("1.10.0")},
			"names":       {StringValues: []string{"b", "a"}},
			"numbers":     {IntValues: []int64{3, 1, 2}},
			"e.com/other": {StringValue: pointer("x")},
		},
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
			"memory": {Value: resource.MustParse("80Gi")},
			"cores":  {Value: resource.MustParse("1500m")},
		},
	}
}

func compile(expression string) cel.CompilationResult {
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	return compiler.CompileCELExpression(expression, cel.Options{})
}

// nanoseconds returns how long one call of work takes, over 20 ms.
func nanoseconds(work func()) float64 {
	const enough = 20 * time.Millisecond
	for count := 1; ; count *= 2 {
		begin := time.Now()
		for range count {
			work()
		}
		if took := time.Since(begin); took >= enough {
			return float64(took.Nanoseconds()) / float64(count)
		}
	}
}

// measure converts the device for each evaluation: the official library has no
// other way.
func measure(expression string, device cel.Device) map[string]any {
	compiled := compile(expression)
	if compiled.Error != nil {
		panic(compiled.Error)
	}
	_, details, err := compiled.DeviceMatches(context.Background(), device)
	if err != nil {
		panic(err)
	}
	return map[string]any{
		"cost":    *details.ActualCost(),
		"compile": nanoseconds(func() { compile(expression) }),
		"evaluate": nanoseconds(func() {
			if _, _, err := compiled.DeviceMatches(context.Background(), device); err != nil {
				panic(err)
			}
		}),
	}
}

// judge reports a panic of the library as such.
func judge(expression string, device cel.Device) (result map[string]any) {
	defer func() {
		if failure := recover(); failure != nil {
			result = map[string]any{"panic": fmt.Sprint(failure)}
		}
	}()
	compiled := compile(expression)
	if compiled.Error != nil {
		return map[string]any{"compile": compiled.Error.Detail}
	}
	result = map[string]any{"max": compiled.MaxCost}
	matches, details, err := compiled.DeviceMatches(context.Background(), device)
	if details != nil && details.ActualCost() != nil {
		result["cost"] = *details.ActualCost()
	}
	if err != nil {
		result["error"] = err.Error()
	} else {
		result["value"] = matches
	}
	return result
}

func main() {
	device := exampleDevice()
	answer := judge
	if len(os.Args) > 1 && os.Args[1] == "bench" {
		answer = measure
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for in.Scan() {
		var expression string
		if err := json.Unmarshal(in.Bytes(), &expression); err != nil {
			panic(err)
		}
		line, err := json.Marshal(answer(expression, device))
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(out, string(line))
	}
}
