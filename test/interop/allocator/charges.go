// SPDX-License-Identifier: Apache-2.0
package main

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Charge is what a device took of its pool's counters when it was allocated: by
// counter set and counter. The official allocator has no such record and counts
// what the slice says now.
type Charge struct {
	Driver   string                       `json:"driver"`
	Pool     string                       `json:"pool"`
	Device   string                       `json:"device"`
	Counters map[string]map[string]string `json:"counters"`
}

func (c *Charge) id() structured.DeviceID {
	return structured.MakeDeviceID(c.Driver, c.Pool, c.Device)
}

// addCharges records, in some worlds, what devices took that are held; the
// slices of some have changed since.
func (g *Generator) addCharges() {
	if !g.themes[themeCharges] {
		return
	}
	changed := pick(g, 0, 50, 90, 90)
	g.world.Charges = map[types.UID][]Charge{}
	devices := devicesByID(g.world)
	for _, claim := range g.world.Allocated {
		result := claim.Status.Allocation.Devices.Results[0]
		device := devices[structured.MakeDeviceID(result.Driver, result.Pool, result.Device)]
		if device == nil || result.AdminAccess != nil || g.chance(5) {
			continue
		}
		charge := Charge{Driver: result.Driver, Pool: result.Pool, Device: result.Device,
			Counters: map[string]map[string]string{}}
		for _, consumption := range device.ConsumesCounters {
			set := map[string]string{}
			for name, counter := range consumption.Counters {
				set[name] = counter.Value.String()
				if g.chance(changed) && name == "memory" {
					set[name] = pick(g, "0", "2Gi", "5Gi", "10Gi", "15Gi", "30Gi")
				} else if g.chance(changed) {
					set[name] = pick(g, "0", "1", "2", "500m", "3")
				}
			}
			charge.Counters[consumption.CounterSet] = set
		}
		g.world.Charges[claim.UID] = []Charge{charge}
	}
}

// charged is w with slices that say of devices what was recorded: the largest
// amount of each counter, and nothing else than they say now unless all holders
// of a device have a record.
func charged(w *World) *World {
	result := copyOf(w)
	devices := devicesByID(result)
	recorded := map[structured.DeviceID]*resourceapi.Device{}
	unrecorded := map[structured.DeviceID]bool{}
	for _, claim := range w.Allocated {
		results := claim.Status.Allocation.Devices.Results
		if len(results) == 0 {
			continue
		}
		if held := results[0]; held.AdminAccess == nil && w.Charges[claim.UID] == nil {
			unrecorded[structured.MakeDeviceID(held.Driver, held.Pool, held.Device)] = true
		}
		for _, charge := range w.Charges[claim.UID] {
			device := devices[charge.id()]
			if device == nil {
				continue
			}
			if recorded[charge.id()] == nil {
				recorded[charge.id()] = device.DeepCopy()
				clearCounters(recorded[charge.id()])
			}
			raiseCounters(recorded[charge.id()], charge.Counters)
		}
	}
	// Slices of several generations or nodes may have a device of that name.
	eachDevice(result, func(slice *resourceapi.ResourceSlice, device *resourceapi.Device) {
		id := structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, device.Name)
		if charges := recorded[id]; charges != nil && !unrecorded[id] {
			device.ConsumesCounters = charges.DeepCopy().ConsumesCounters
		}
	})
	return result
}

func devicesByID(w *World) map[structured.DeviceID]*resourceapi.Device {
	result := map[structured.DeviceID]*resourceapi.Device{}
	eachDevice(w, func(slice *resourceapi.ResourceSlice, device *resourceapi.Device) {
		result[structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, device.Name)] = device
	})
	return result
}

func clearCounters(device *resourceapi.Device) {
	for _, consumption := range device.ConsumesCounters {
		for name := range consumption.Counters {
			consumption.Counters[name] = counter("0")
		}
	}
}

func raiseCounters(device *resourceapi.Device, amounts map[string]map[string]string) {
	for _, consumption := range device.ConsumesCounters {
		for name, amount := range amounts[consumption.CounterSet] {
			taken := counter(amount)
			if now := consumption.Counters[name]; now.Value.Cmp(taken.Value) < 0 {
				consumption.Counters[name] = taken
			}
		}
	}
}
