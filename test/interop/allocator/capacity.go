// SPDX-License-Identifier: Apache-2.0
package main

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func quantity(text string) *resource.Quantity {
	result := resource.MustParse(text)
	return &result
}

// addCapacity makes a device one with capacity, mostly one that can be shared.
func (g *Generator) addCapacity(device *resourceapi.Device) {
	shared := g.themes[themeCapacity] && g.chance(70)
	if shared {
		device.AllowMultipleAllocations = pointer(true)
	} else if g.chance(20) {
		device.AllowMultipleAllocations = pointer(false)
	}
	if g.chance(5) {
		return // shared by any number
	}
	device.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		"memory": {Value: *quantity(pick(g, "4Gi", "8Gi", "8192Mi", "16Gi"))},
	}
	if g.chance(65) {
		device.Capacity["cores"] = resourceapi.DeviceCapacity{Value: *quantity(pick(g, "2", "4", "10", "3500m"))}
	}
	if !shared {
		return
	}
	if g.chance(60) {
		memory := device.Capacity["memory"]
		memory.RequestPolicy = g.memoryPolicy()
		device.Capacity["memory"] = memory
	}
	if cores, found := device.Capacity["cores"]; found && g.chance(80) {
		if cores.RequestPolicy = g.corePolicy(); cores.Value.Cmp(*quantity("4")) < 0 {
			cores.Value = *quantity("4")
		}
		device.Capacity["cores"] = cores
	}
}

// memoryPolicy is one for whole numbers.
func (g *Generator) memoryPolicy() *resourceapi.CapacityRequestPolicy {
	switch g.IntN(4) {
	case 0:
		return &resourceapi.CapacityRequestPolicy{Default: quantity("1Gi"),
			ValidValues: []resource.Quantity{*quantity("1Gi"), *quantity("2Gi"), *quantity("4Gi")}}
	case 1:
		return &resourceapi.CapacityRequestPolicy{Default: quantity("1Gi"),
			ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: quantity("1Gi"), Step: quantity("1Gi")}}
	case 2:
		return &resourceapi.CapacityRequestPolicy{Default: quantity(pick(g, "2Gi", "2048Mi")),
			ValidRange: &resourceapi.CapacityRequestPolicyRange{
				Min: quantity("1Gi"), Max: quantity("3Gi"), Step: quantity(pick(g, "512Mi", "1024Mi"))}}
	}
	return &resourceapi.CapacityRequestPolicy{Default: quantity("2Gi"),
		ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: quantity("1Gi")}}
}

// corePolicy is one that counts in fractions, often.
func (g *Generator) corePolicy() *resourceapi.CapacityRequestPolicy {
	switch g.IntN(6) {
	case 0:
		return &resourceapi.CapacityRequestPolicy{Default: quantity("1"),
			ValidValues: []resource.Quantity{*quantity("1"), *quantity("2"), *quantity("3")}}
	case 1:
		return &resourceapi.CapacityRequestPolicy{Default: quantity("1"),
			ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: quantity("1"), Max: quantity("3"), Step: quantity("1")}}
	case 2, 3, 4:
		if g.features.FractionalCapacityRange || g.chance(30) { // stored while the feature was on
			return &resourceapi.CapacityRequestPolicy{Default: quantity("500m"),
				ValidRange: &resourceapi.CapacityRequestPolicyRange{
					Min: quantity("500m"), Max: quantity(pick(g, "1500m", "2")), Step: quantity(pick(g, "250m", "500m"))}}
		}
	}
	return &resourceapi.CapacityRequestPolicy{Default: quantity("2")}
}

// capacityRequest is nil where a request leaves the amounts to the policy.
func (g *Generator) capacityRequest() *resourceapi.CapacityRequirements {
	if !g.themes[themeCapacity] || g.chance(30) {
		return nil
	}
	result := &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{}}
	if g.chance(80) {
		result.Requests["memory"] = *quantity(pick(g, "1Gi", "1500Mi", "2Gi", "2048Mi", "3Gi", "4Gi", "5Gi", "512Mi"))
	}
	if g.chance(50) {
		result.Requests["cores"] = *quantity(pick(g, "1", "1", "2", "500m", "600m", "1200m", "3", "0"))
	}
	if len(result.Requests) == 0 {
		return nil // empty ones are the same as none to us
	}
	if g.chance(2) {
		result.Requests["unknown"] = *quantity("1")
	}
	if g.chance(1) {
		result.Requests["memory"] = *quantity(pick(g, "9223372036854775807", "100Ei"))
	}
	return result
}
