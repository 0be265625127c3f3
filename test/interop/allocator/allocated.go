// SPDX-License-Identifier: Apache-2.0
package main

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// addAllocated holds some devices by claims of others: dedicated, shared, and
// for an administrator; some devices have changed since they were allocated.
func (g *Generator) addAllocated() {
	if !g.themes[themeAllocated] && !g.themes[themeCapacity] && !g.chance(30) {
		return
	}
	dedicated := sets.New[structured.DeviceID]()
	percent := pick(g, 10, 25, 50)
	if g.themes[themeCapacity] {
		percent = pick(g, 25, 50, 75)
	}
	eachDevice(g.world, func(slice *resourceapi.ResourceSlice, device *resourceapi.Device) {
		if len(g.world.Allocated) >= 40 || !g.chance(percent) {
			return
		}
		id := structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, device.Name)
		result := resourceapi.DeviceRequestAllocationResult{
			Request: "q0", Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: device.Name,
		}
		shared := device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations
		switch {
		case g.chance(10):
			result.AdminAccess = pointer(true)
		case g.chance(6): // it has become the other kind since
			shared = !shared
		}
		if result.AdminAccess == nil && !shared && dedicated.Has(id) {
			return
		}
		if !shared {
			dedicated.Insert(id)
			g.hold(result)
			return
		}
		for range g.between(1, 2) {
			g.hold(g.share(result, device))
		}
	})
	if g.chance(10) {
		g.hold(resourceapi.DeviceRequestAllocationResult{
			Request: "q0", Driver: pick(g, g.drivers...), Pool: "p0", Device: "gone"})
	}
}

func (g *Generator) share(result resourceapi.DeviceRequestAllocationResult, device *resourceapi.Device) resourceapi.DeviceRequestAllocationResult {
	result.ShareID = pointer(types.UID(g.uid()))
	result.ConsumedCapacity = nil
	if len(device.Capacity) > 0 && g.chance(90) {
		result.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{}
		for name := range device.Capacity {
			amount := pick(g, "1", "1", "500m", "0")
			if name == "memory" {
				amount = pick(g, "1Gi", "2Gi", "2048Mi", "4Gi")
			}
			result.ConsumedCapacity[name] = *quantity(amount)
		}
	}
	return result
}

// hold adds a claim with this result.
func (g *Generator) hold(result resourceapi.DeviceRequestAllocationResult) {
	claim := g.newClaim(g.name("held"))
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{
		Name: "q0",
		Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: "any",
			AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
			Count:           1,
			AdminAccess:     result.AdminAccess,
		},
	}}
	claim.Status.Allocation = &resourceapi.AllocationResult{
		Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{result}},
	}
	g.world.Allocated = append(g.world.Allocated, claim)
}

// allocatedState is what the scheduler makes of claims: foreachAllocatedDevice()
// in its plugin.
func allocatedState(w *World) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range w.Allocated {
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.AdminAccess != nil && *result.AdminAccess {
				continue
			}
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			if !w.Features.ConsumableCapacity || result.ShareID == nil {
				state.AllocatedDevices.Insert(id)
				continue
			}
			state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
			if result.ConsumedCapacity != nil {
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
			}
		}
	}
	return state
}
