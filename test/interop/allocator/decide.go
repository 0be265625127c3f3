// SPDX-License-Identifier: Apache-2.0
package main

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// A rule decides a world if the outcome is another where the rule has nothing
// to say: where the gate is the other way, or what the rule is about is gone.
type rule struct {
	name   string
	remove func(*World)
}

func devicesWithout(change func(*resourceapi.Device)) func(*World) {
	return func(w *World) {
		eachDevice(w, func(_ *resourceapi.ResourceSlice, device *resourceapi.Device) { change(device) })
	}
}

func claimsWithout(change func(*resourceapi.DeviceClaim)) func(*World) {
	return func(w *World) {
		for _, claim := range w.Claims {
			change(&claim.Spec.Devices)
		}
	}
}

func slicesWithout(change func(*resourceapi.ResourceSlice)) func(*World) {
	return func(w *World) {
		for _, slice := range w.Slices {
			change(slice)
		}
	}
}

// requestsWithout changes requests by themselves.
func requestsWithout(change func(*resourceapi.ExactDeviceRequest)) func(*World) {
	return claimsWithout(func(claim *resourceapi.DeviceClaim) {
		for i := range claim.Requests {
			if claim.Requests[i].Exactly != nil {
				change(claim.Requests[i].Exactly)
			}
			for j := range claim.Requests[i].FirstAvailable {
				alternative := &claim.Requests[i].FirstAvailable[j]
				exactly := resourceapi.ExactDeviceRequest{
					DeviceClassName: alternative.DeviceClassName, Selectors: alternative.Selectors,
					AllocationMode: alternative.AllocationMode, Count: alternative.Count,
					Tolerations: alternative.Tolerations, Capacity: alternative.Capacity,
				}
				change(&exactly)
				alternative.Selectors, alternative.AllocationMode = exactly.Selectors, exactly.AllocationMode
				alternative.Count, alternative.Tolerations = exactly.Count, exactly.Tolerations
				alternative.Capacity = exactly.Capacity
			}
		}
	})
}

func allocatedWithout(applies func(resourceapi.DeviceRequestAllocationResult) bool) func(*World) {
	return func(w *World) {
		var kept []*resourceapi.ResourceClaim
		for _, claim := range w.Allocated {
			if !applies(claim.Status.Allocation.Devices.Results[0]) {
				kept = append(kept, claim)
			}
		}
		w.Allocated = kept
	}
}

func gate(name string, value func(*structured.Features) *bool) rule {
	return rule{"gate " + name, func(w *World) {
		field := value(&w.Features)
		*field = !*field
	}}
}

var rules = []rule{
	gate("AdminAccess", func(f *structured.Features) *bool { return &f.AdminAccess }),
	gate("CompatibilityGroups", func(f *structured.Features) *bool { return &f.CompatibilityGroups }),
	gate("ConsumableCapacity", func(f *structured.Features) *bool { return &f.ConsumableCapacity }),
	gate("DerivedAttributes", func(f *structured.Features) *bool { return &f.DerivedAttributes }),
	gate("DeviceBindingAndStatus", func(f *structured.Features) *bool { return &f.DeviceBindingAndStatus }),
	gate("DeviceTaints", func(f *structured.Features) *bool { return &f.DeviceTaints }),
	gate("FractionalCapacityRange", func(f *structured.Features) *bool { return &f.FractionalCapacityRange }),
	gate("ListTypeAttributes", func(f *structured.Features) *bool { return &f.ListTypeAttributes }),
	gate("OptionalNodeOperations", func(f *structured.Features) *bool { return &f.OptionalNodeOperations }),
	gate("PartitionableDevices", func(f *structured.Features) *bool { return &f.PartitionableDevices }),
	gate("PrioritizedList", func(f *structured.Features) *bool { return &f.PrioritizedList }),
	{"2.2 a pool is complete", slicesWithout(func(s *resourceapi.ResourceSlice) { s.Spec.Pool.ResourceSliceCount++ })},
	{"2.2 nodes of slices", slicesWithout(func(s *resourceapi.ResourceSlice) {
		if s.Spec.PerDeviceNodeSelection == nil {
			s.Spec.NodeName, s.Spec.NodeSelector, s.Spec.AllNodes = nil, nil, pointer(true)
		}
	})},
	{"2.2 nodes of devices", devicesWithout(func(d *resourceapi.Device) {
		if d.NodeName != nil || d.NodeSelector != nil {
			d.NodeName, d.NodeSelector, d.AllNodes = nil, nil, pointer(true)
		}
	})},
	{"2.2 generations", slicesWithout(func(s *resourceapi.ResourceSlice) { s.Spec.Pool.Generation = 0 })},
	{"2.3 dedicated devices are busy", allocatedWithout(func(r resourceapi.DeviceRequestAllocationResult) bool {
		return r.ShareID == nil
	})},
	{"2.3 shares count", allocatedWithout(func(r resourceapi.DeviceRequestAllocationResult) bool {
		return r.ShareID != nil
	})},
	{"2.4 order of slices", slicesWithout(func(s *resourceapi.ResourceSlice) {
		name := []byte(s.Name)
		for i := 1; i < 3; i++ {
			name[i] = '0' + '9' - name[i]
		}
		s.Name = string(name)
	})},
	{"2.4 order of pools", func(w *World) {
		for _, slice := range w.Slices {
			slice.Spec.Pool.Name = string('p' + '9' - slice.Spec.Pool.Name[1])
		}
		for _, claim := range w.Allocated {
			for i := range claim.Status.Allocation.Devices.Results {
				result := &claim.Status.Allocation.Devices.Results[i]
				result.Pool = string('p' + '9' - result.Pool[1])
			}
		}
	}},
	{"2.5 mode All", requestsWithout(func(r *resourceapi.ExactDeviceRequest) {
		if r.AllocationMode == resourceapi.DeviceAllocationModeAll {
			r.AllocationMode, r.Count = resourceapi.DeviceAllocationModeExactCount, 1
		}
	})},
	{"2.6 class and request selectors", func(w *World) {
		requestsWithout(func(r *resourceapi.ExactDeviceRequest) { r.Selectors = nil })(w)
		for _, class := range w.Classes {
			class.Spec.Selectors = nil
		}
	}},
	{"2.6 alternatives after the first", claimsWithout(func(claim *resourceapi.DeviceClaim) {
		for i := range claim.Requests {
			if len(claim.Requests[i].FirstAvailable) > 1 {
				claim.Requests[i].FirstAvailable = claim.Requests[i].FirstAvailable[:1]
			}
		}
	})},
	{"2.6 at most 32 devices", requestsWithout(func(r *resourceapi.ExactDeviceRequest) { r.Count = min(r.Count, 2) })},
	{"2.7 admin access", requestsWithout(func(r *resourceapi.ExactDeviceRequest) { r.AdminAccess = nil })},
	{"2.8 matchAttribute", claimsWithout(func(claim *resourceapi.DeviceClaim) {
		dropConstraints(claim, func(c resourceapi.DeviceConstraint) bool { return c.MatchAttribute != nil })
	})},
	{"2.8 distinctAttribute", claimsWithout(func(claim *resourceapi.DeviceClaim) {
		dropConstraints(claim, func(c resourceapi.DeviceConstraint) bool { return c.DistinctAttribute != nil })
	})},
	{"2.9 taints of devices", devicesWithout(func(d *resourceapi.Device) { d.Taints = nil })},
	{"2.9 taint rules", func(w *World) { w.TaintRules = nil }},
	{"2.9 tolerations", requestsWithout(func(r *resourceapi.ExactDeviceRequest) { r.Tolerations = nil })},
	{"2.10 counters", devicesWithout(func(d *resourceapi.Device) { d.ConsumesCounters = nil })},
	{"2.10 charges as they were recorded", func(w *World) { w.Slices = charged(w).Slices }},
	{"2.10 compatibility groups", devicesWithout(func(d *resourceapi.Device) {
		for i := range d.ConsumesCounters {
			d.ConsumesCounters[i].CompatibilityGroups = nil
		}
	})},
	{"2.11 capacity requests", requestsWithout(func(r *resourceapi.ExactDeviceRequest) { r.Capacity = nil })},
	{"2.11 request policies", devicesWithout(func(d *resourceapi.Device) {
		for name, capacity := range d.Capacity {
			capacity.RequestPolicy = nil
			d.Capacity[name] = capacity
		}
	})},
	{"2.11 sharing", devicesWithout(func(d *resourceapi.Device) { d.AllowMultipleAllocations = nil })},
	{"2.13 binding conditions", devicesWithout(func(d *resourceapi.Device) {
		d.BindingConditions, d.BindingFailureConditions = nil, nil
	})},
	{"2.13 bindsToNode", devicesWithout(func(d *resourceapi.Device) { d.BindsToNode = nil })},
	{"2.13 configuration of classes", func(w *World) {
		for _, class := range w.Classes {
			class.Spec.Config = nil
		}
	}},
	{"2.13 configuration of claims", claimsWithout(func(claim *resourceapi.DeviceClaim) { claim.Config = nil })},
	{"skipped operations", slicesWithout(func(s *resourceapi.ResourceSlice) { s.Spec.SkipNodeOperations = nil })},
	{"derived attributes", claimsWithout(func(claim *resourceapi.DeviceClaim) {
		for i := range claim.Requests {
			if claim.Requests[i].Exactly != nil {
				claim.Requests[i].Exactly.DerivedAttributes = nil
			}
			for j := range claim.Requests[i].FirstAvailable {
				claim.Requests[i].FirstAvailable[j].DerivedAttributes = nil
			}
		}
	})},
}

func dropConstraints(claim *resourceapi.DeviceClaim, drop func(resourceapi.DeviceConstraint) bool) {
	var kept []resourceapi.DeviceConstraint
	for _, constraint := range claim.Constraints {
		if !drop(constraint) {
			kept = append(kept, constraint)
		}
	}
	claim.Constraints = kept
}

// deciding are the names of the rules that decide w.
func deciding(w *World) []string {
	if w.Expect.Steps > 500 {
		return nil // it would take too long
	}
	expected := w.Expect.text()
	var result []string
	for _, rule := range rules {
		other := copyOf(w)
		rule.remove(other)
		structured.EnableAllocators(newest)
		if outcome := run(other, min(stepLimit(w), 500)); outcome != nil && outcome.text() != expected {
			result = append(result, rule.name)
		}
	}
	return result
}
