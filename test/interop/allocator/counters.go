// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func counter(text string) resourceapi.Counter {
	return resourceapi.Counter{Value: resource.MustParse(text)}
}

// counterSets of a pool; amounts are such that one to four devices fit.
func (g *Generator) counterSets() []resourceapi.CounterSet {
	if !g.themes[themeCounters] {
		return nil
	}
	var result []resourceapi.CounterSet
	for i := range g.between(1, 3) {
		set := resourceapi.CounterSet{Name: fmt.Sprintf("set%d", i), Counters: map[string]resourceapi.Counter{
			"memory": counter(pick(g, "10Gi", "20Gi", "40Gi", "10737418240")),
		}}
		if g.chance(60) {
			set.Counters["cores"] = counter(pick(g, "4", "8", "4000m", "2500m"))
		}
		result = append(result, set)
	}
	return result
}

func (g *Generator) consumption(sets []resourceapi.CounterSet) []resourceapi.DeviceCounterConsumption {
	var result []resourceapi.DeviceCounterConsumption
	for _, set := range some(g, pick(g, 1, 1, 1, 2), sets...) {
		entry := resourceapi.DeviceCounterConsumption{CounterSet: set.Name, Counters: map[string]resourceapi.Counter{}}
		for name := range set.Counters {
			if name == "memory" {
				entry.Counters[name] = counter(pick(g, "2Gi", "5Gi", "10Gi", "15Gi", "0"))
			} else if g.chance(60) {
				entry.Counters[name] = counter(pick(g, "1", "2", "500m", "3"))
			}
		}
		if g.themes[themeGroups] && g.chance(60) {
			entry.CompatibilityGroups = some(g, g.between(1, 2), "mig", "vgpu", "mps")
		}
		result = append(result, entry)
	}
	if g.themes[themeInvalid] && g.chance(5) {
		result[0].CounterSet = "unknown"
	}
	if g.themes[themeInvalid] && g.chance(5) {
		result[0].Counters["unknown"] = counter("1")
	}
	return result
}
