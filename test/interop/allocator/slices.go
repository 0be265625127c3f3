// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// size is that of a world, in devices: most are small, so that many can be run
// and so that the search is exhausted.
func (g *Generator) size() int {
	switch pick(g, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2) {
	case 0:
		return g.between(1, 7)
	case 1:
		return g.between(4, 14)
	}
	if g.chance(80) {
		return g.between(10, 40)
	}
	return g.between(40, 200)
}

// advanced is true of devices of which a slice holds but 64.
func (g *Generator) advanced() bool {
	return g.themes[themeTaints] || g.themes[themeCounters] || g.themes[themeLists]
}

func (g *Generator) addSlices() {
	left := g.size()
	pools := g.between(1, min(4, left))
	for i := range pools {
		devices := left
		if i < pools-1 {
			devices = g.between(0, left)
		}
		left -= devices
		// Drivers share names of pools, as they do when each names its pool by the node.
		g.addPool(pick(g, g.drivers...), fmt.Sprintf("p%d", g.IntN(pools+1)), devices)
	}
}

func (g *Generator) hasPool(driver, pool string) bool {
	for _, slice := range g.world.Slices {
		if slice.Spec.Driver == driver && slice.Spec.Pool.Name == pool {
			return true
		}
	}
	return false
}

func (g *Generator) addPool(driver, pool string, devices int) {
	if g.hasPool(driver, pool) {
		return
	}
	most := 128
	if g.advanced() {
		most = 64
	}
	generation := int64(g.between(0, 2))
	var slices []*resourceapi.ResourceSlice
	sets := g.counterSets()
	if len(sets) > 0 {
		slice := g.newSlice(driver, pool, generation)
		slice.Spec.PerDeviceNodeSelection = nil
		if slice.Spec.NodeName == nil && slice.Spec.NodeSelector == nil {
			slice.Spec.AllNodes = pointer(true)
		}
		slice.Spec.SharedCounters = sets
		slices = append(slices, slice)
	}
	for number := 0; ; {
		slice := g.newSlice(driver, pool, generation)
		count := min(most, devices-number)
		if g.chance(40) {
			count = g.between(0, count)
		}
		for range count {
			slice.Spec.Devices = append(slice.Spec.Devices, g.device(slice, fmt.Sprintf("d%d", number), sets))
			number++
		}
		slices = append(slices, slice)
		if number >= devices {
			break
		}
	}
	for _, slice := range slices {
		slice.Spec.Pool.ResourceSliceCount = int64(len(slices))
	}
	g.world.Slices = append(g.world.Slices, g.disturb(slices)...)
}

func (g *Generator) newSlice(driver, pool string, generation int64) *resourceapi.ResourceSlice {
	g.serial++
	slice := &resourceapi.ResourceSlice{
		TypeMeta: kind("ResourceSlice"),
		// Names whose order is not that of their making.
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%02d-%d", g.IntN(100), g.serial)},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: driver,
			Pool:   resourceapi.ResourcePool{Name: pool, Generation: generation},
		},
	}
	g.selectNode(&slice.Spec)
	if g.themes[themeSkipOperations] && g.chance(50) {
		slice.Spec.SkipNodeOperations = pick(g,
			[]resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationAll},
			[]resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationNodeUnprepareResources},
			[]resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationNodePrepareResources,
				resourceapi.SkipNodeOperationNodeUnprepareResources})
	}
	return slice
}

// disturb leaves the pool in the midst of an update, or makes it invalid.
func (g *Generator) disturb(slices []*resourceapi.ResourceSlice) []*resourceapi.ResourceSlice {
	if g.themes[themeIncomplete] && g.chance(50) {
		if len(slices) > 1 && g.chance(50) {
			slices = slices[1:]
		} else {
			for _, slice := range slices {
				slice.Spec.Pool.ResourceSliceCount++
			}
		}
	}
	if g.themes[themeGenerations] && g.chance(60) {
		old := pick(g, slices...).DeepCopy()
		old.Name += "-other"
		// Never the same: slices of one generation agree on how many there are.
		if old.Spec.Pool.Generation > 0 && g.chance(30) {
			old.Spec.Pool.Generation--
		} else {
			old.Spec.Pool.Generation++
		}
		old.Spec.Pool.ResourceSliceCount = int64(g.between(1, 2))
		if g.chance(50) {
			old.Spec.NodeSelector, old.Spec.AllNodes, old.Spec.PerDeviceNodeSelection = nil, nil, nil
			old.Spec.NodeName = pointer(pick(g, thisNode, otherNode))
			for i := range old.Spec.Devices {
				device := &old.Spec.Devices[i]
				device.NodeName, device.AllNodes, device.NodeSelector = nil, nil, nil
			}
		}
		slices = append(slices, old)
	}
	if g.themes[themeInvalid] && g.chance(60) {
		twin := pick(g, slices...).DeepCopy()
		twin.Name += "-twin"
		if len(twin.Spec.Devices) > 1 {
			twin.Spec.Devices = twin.Spec.Devices[:1]
		}
		slices = append(slices, twin)
		for _, slice := range slices {
			slice.Spec.Pool.ResourceSliceCount = int64(len(slices))
		}
	}
	return slices
}

func (g *Generator) device(slice *resourceapi.ResourceSlice, name string, sets []resourceapi.CounterSet) resourceapi.Device {
	device := resourceapi.Device{Name: name, Attributes: g.attributes()}
	if g.themes[themeCapacity] || g.chance(10) {
		g.addCapacity(&device)
	}
	if slice.Spec.PerDeviceNodeSelection != nil {
		g.selectNodeOfDevice(&device)
	}
	if len(sets) > 0 && g.chance(85) {
		device.ConsumesCounters = g.consumption(sets)
	}
	if g.themes[themeTaints] && g.chance(40) {
		for range g.between(1, 2) {
			device.Taints = append(device.Taints, g.taint())
		}
	}
	if g.themes[themeBinding] {
		if g.chance(50) {
			device.BindsToNode = pointer(g.chance(80))
		}
		if g.chance(35) {
			device.BindingConditions = some(g, g.between(1, 2), "Attached", "Ready")
			device.BindingFailureConditions = some(g, g.between(1, 2), "Failed", "Broken")
		}
	}
	return device
}

// attributes have few values, so that they are equal often and differ often, and
// a domain of their own or that of the driver.
func (g *Generator) attributes() map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	result := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		"index": {IntValue: pointer(int64(g.IntN(4)))},
		"model": {StringValue: pointer(pick(g, "m0", "m0", "m1"))},
	}
	if !g.themes[themeConstraints] && !g.themes[themeSelectors] {
		return result
	}
	if g.chance(90) {
		result["numa"] = resourceapi.DeviceAttribute{IntValue: pointer(int64(g.IntN(2)))}
	} else if g.chance(50) { // of another kind
		result["numa"] = resourceapi.DeviceAttribute{StringValue: pointer("0")}
	}
	if g.chance(85) {
		result["std.example.org/root"] = resourceapi.DeviceAttribute{StringValue: pointer(pick(g, "x", "y", "z"))}
	}
	if g.chance(85) {
		result["version"] = resourceapi.DeviceAttribute{VersionValue: pointer(pick(g, "1.0.0", "1.0.0+b", "2.0.0"))}
	}
	if g.chance(80) {
		result["flag"] = resourceapi.DeviceAttribute{BoolValue: pointer(g.chance(60))}
	}
	// The full name comes before the bare one; to selectors both are one name,
	// and it is by chance there which of them they see.
	if g.chance(20) && !g.themes[themeSelectors] {
		result["a.example.com/numa"] = resourceapi.DeviceAttribute{IntValue: pointer(int64(g.IntN(2)))}
	}
	if g.themes[themeLists] {
		g.makeLists(result)
	}
	return result
}

func (g *Generator) makeLists(attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute) {
	if g.chance(70) {
		attributes["numa"] = resourceapi.DeviceAttribute{IntValues: some[int64](g, g.between(1, 3), 0, 1, 2)}
	}
	if g.chance(50) {
		attributes["std.example.org/root"] = resourceapi.DeviceAttribute{StringValues: some(g, g.between(1, 2), "x", "y", "z")}
	}
	if g.chance(30) {
		attributes["version"] = resourceapi.DeviceAttribute{VersionValues: some(g, g.between(1, 2), "1.0.0", "2.0.0", "3.0.0")}
	}
	if g.chance(30) {
		attributes["flag"] = resourceapi.DeviceAttribute{BoolValues: some(g, g.between(1, 2), true, false)}
	}
}
