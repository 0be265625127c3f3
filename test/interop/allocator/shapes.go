// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Worlds whose time is measured: shape is the name of each.
type shape struct {
	name  string
	world *World
}

var allFeatures = structured.Features{AdminAccess: true, CompatibilityGroups: true, ConsumableCapacity: true,
	DerivedAttributes: true, DeviceBindingAndStatus: true, DeviceTaints: true, FractionalCapacityRange: true,
	ListTypeAttributes: true, OptionalNodeOperations: true, PartitionableDevices: true, PrioritizedList: true}

// equalDevices is a world of one pool, with a claim of `counts` requests.
func equalDevices(devices int, counts ...int64) *World {
	g := newGenerator(1, 0)
	g.features = allFeatures
	g.drivers = []string{"a.example.com"}
	g.world = &World{Node: g.node(), Features: g.features}
	slice := g.newSlice("a.example.com", "p0", 1)
	slice.Spec.NodeName, slice.Spec.AllNodes = pointer(thisNode), nil
	slice.Spec.Pool.ResourceSliceCount = 1
	for i := range devices {
		slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{
			Name:       fmt.Sprintf("d%d", i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"model": {StringValue: pointer("m0")}},
		})
	}
	g.world.Slices = append(g.world.Slices, slice)
	g.addClasses()
	claim := g.newClaim("claim")
	for i, count := range counts {
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourceapi.DeviceRequest{
			Name: fmt.Sprintf("q%d", i),
			Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: "any",
				AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
				Count:           count,
				Selectors:       []resourceapi.DeviceSelector{celSelector(`device.attributes["a.example.com"].model == "m0"`)},
			},
		})
	}
	g.world.Claims = append(g.world.Claims, claim)
	return g.world
}

// holding holds the first `count` devices.
func holding(w *World, count int) *World {
	g := newGenerator(1, 1)
	g.world = w
	for _, device := range w.Slices[0].Spec.Devices[:count] {
		g.hold(resourceapi.DeviceRequestAllocationResult{
			Request: "q0", Driver: "a.example.com", Pool: "p0", Device: device.Name})
	}
	return w
}

// impossible makes the last request one that no device fits.
func impossible(w *World) *World {
	requests := w.Claims[0].Spec.Devices.Requests
	requests[len(requests)-1].Exactly.Selectors = []resourceapi.DeviceSelector{celSelector(`device.driver == "z"`)}
	return w
}

// partitions has a large device first, and small ones with which alone the
// request is fulfilled.
func partitions(small int) *World {
	w := equalDevices(small+1, int64(small))
	slice := w.Slices[0]
	memory := resourceapi.CounterSet{Name: "memory",
		Counters: map[string]resourceapi.Counter{"memory": counter(fmt.Sprintf("%dGi", 10*small))}}
	cores := resourceapi.CounterSet{Name: "cores", Counters: map[string]resourceapi.Counter{}}
	for i := range slice.Spec.Devices {
		amount := "10Gi"
		if i == 0 {
			amount = "20Gi"
		}
		name := fmt.Sprintf("core%d", i)
		cores.Counters[name] = counter("1")
		slice.Spec.Devices[i].ConsumesCounters = []resourceapi.DeviceCounterConsumption{
			{CounterSet: "memory", Counters: map[string]resourceapi.Counter{"memory": counter(amount)}},
			{CounterSet: "cores", Counters: map[string]resourceapi.Counter{name: counter("1")}},
		}
	}
	counters := slice.DeepCopy()
	counters.Name += "-counters"
	counters.Spec.Devices = nil
	counters.Spec.SharedCounters = []resourceapi.CounterSet{memory, cores}
	w.Slices = append(w.Slices, counters)
	for _, slice := range w.Slices {
		slice.Spec.Pool.ResourceSliceCount = 2
	}
	return w
}

// gang has the claims of so many pods, in place of the one of `w`.
func gang(w *World, pods int) *World {
	claim := w.Claims[0]
	w.Claims = nil
	for i := range pods {
		own := claim.DeepCopy()
		own.Name = fmt.Sprintf("claim-%d", i)
		own.UID = types.UID(own.Name)
		w.Claims = append(w.Claims, own)
	}
	return w
}

// sharing has devices of 80Gi, of which each request wants 10Gi.
func sharing(w *World) *World {
	devices := w.Slices[0].Spec.Devices
	for i := range devices {
		devices[i].AllowMultipleAllocations = pointer(true)
		devices[i].Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {
			Value: *quantity("80Gi"),
			RequestPolicy: &resourceapi.CapacityRequestPolicy{Default: quantity("1Gi"),
				ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: quantity("1Gi")}},
		}}
	}
	requests := w.Claims[0].Spec.Devices.Requests
	for i := range requests {
		requests[i].Exactly.Capacity = &resourceapi.CapacityRequirements{
			Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": *quantity("10Gi")}}
	}
	return w
}

// wanting has a claim for `count` devices.
func wanting(w *World, count int64) *World {
	w.Claims[0].Spec.Devices.Requests[0].Exactly.Count = count
	return w
}

// grouped has partitions that are compatible with those of their own group:
// every other one.
func grouped(w *World) *World {
	devices := w.Slices[0].Spec.Devices
	for i := range devices {
		devices[i].ConsumesCounters[0].CompatibilityGroups = []string{fmt.Sprintf("group-%d", i%2)}
	}
	return w
}

// Those without a number are of upstream's own benchmarks, on one node.
func shapes() []shape {
	return []shape{
		{"PB-1 10 devices, all free", equalDevices(10, 1)},
		{"PB-1 10 devices, half free", holding(equalDevices(10, 1), 5)},
		{"PB-1 10 devices, one free", holding(equalDevices(10, 1), 9)},
		{"PB-3 21 of 20 equal devices", equalDevices(20, 21)},
		{"PB-3 16 of 64 equal devices, then one that is not there", impossible(equalDevices(64, 16, 1))},
		{"PB-4 partitions, 7 of 8", partitions(7)},
		{"PB-4 partitions, 15 of 16", partitions(15)},
		{"PB-4 partitions, 31 of 32", partitions(31)},
		{"PB-7 16 claims for 2 of 32 equal devices", gang(equalDevices(32, 2), 16)},
		{"PB-7 16 claims for 2 of 31 equal devices", gang(equalDevices(31, 2), 16)},
		{"shared devices, 20 claims for two times 10Gi", gang(sharing(equalDevices(10, 1, 1)), 20)},
		{"partitions, 2 of 8", wanting(partitions(7), 2)},
		{"compatibility groups, 2 of 8", wanting(grouped(partitions(7)), 2)},
	}
}
