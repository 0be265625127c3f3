// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"math/rand/v2"

	"k8s.io/dynamic-resource-allocation/structured"
)

// Theme is a concept that a world is about. A world has a few of them, so that
// rules meet, and so that each decides many worlds.
type Theme int

const (
	themeAdmin Theme = iota
	themeAll
	themeAllocated
	themeAlternatives
	themeBinding
	themeCapacity
	themeCharges
	themeConfig
	themeConstraints
	themeCounters
	themeDerived
	themeGenerations
	themeGroups
	themeIncomplete
	themeInvalid
	themeLimit
	themeLists
	themeMistakes
	themeNodes
	themePerDevice
	themeSelectors
	themeSkipOperations
	themeTaintRules
	themeTaints
	themeCount
)

// rare themes end most worlds with the same answer.
var rare = map[Theme]bool{themeInvalid: true, themeMistakes: true, themeIncomplete: true,
	themeLimit: true, themeGenerations: true}

// needs are the themes without which one has no effect.
var needs = map[Theme][]Theme{
	themeCharges:    {themeAllocated, themeCounters},
	themeDerived:    {themeConstraints},
	themeGroups:     {themeCounters},
	themeTaintRules: {themeTaints},
	themeLists:      {themeConstraints},
}

// Generator makes one world.
type Generator struct {
	*rand.Rand
	themes   [themeCount]bool
	drivers  []string
	features structured.Features
	world    *World
	serial   int
}

func newGenerator(seed, index uint64) *Generator {
	return &Generator{Rand: rand.New(rand.NewPCG(seed, index))}
}

// chance is true in `percent` of 100 cases.
func (g *Generator) chance(percent int) bool { return g.IntN(100) < percent }

// between is a number from low to high.
func (g *Generator) between(low, high int) int { return low + g.IntN(high-low+1) }

func pick[T any](g *Generator, values ...T) T { return values[g.IntN(len(values))] }

func pointer[T any](value T) *T { return &value }

// some is a choice of up to `count` of the values, in their order.
func some[T any](g *Generator, count int, values ...T) []T {
	var result []T
	for i, value := range values {
		if len(result) < count && g.IntN(len(values)-i) < count-len(result) {
			result = append(result, value)
		}
	}
	return result
}

func (g *Generator) name(prefix string) string {
	g.serial++
	return fmt.Sprintf("%s%d", prefix, g.serial)
}

func (g *Generator) uid() string {
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", g.Uint32(), g.IntN(1<<16), g.IntN(1<<12),
		g.IntN(1<<12), g.Uint64()&(1<<48-1))
}

func (g *Generator) chooseThemes() {
	for count := g.between(0, 6); count > 0; count-- {
		theme := Theme(g.IntN(int(themeCount)))
		if g.chance(25) { // those that decide less often than others
			theme = pick(g, themeCapacity, themeLists, themeBinding, themeAlternatives)
		}
		if rare[theme] && g.chance(60) {
			continue
		}
		g.themes[theme] = true
		for _, other := range needs[theme] {
			g.themes[other] = true
		}
	}
}

// chooseFeatures switches all on in most worlds, so that those which need a
// feature need it among others that are on, too.
func (g *Generator) chooseFeatures() {
	on := pick(g, 100, 100, 100, 97, 90, 50)
	f := structured.Features{
		AdminAccess:             g.chance(on),
		CompatibilityGroups:     g.chance(on),
		ConsumableCapacity:      g.chance(on),
		DerivedAttributes:       g.chance(on),
		DeviceBindingAndStatus:  g.chance(on),
		DeviceTaints:            g.chance(on),
		FractionalCapacityRange: g.chance(on - 20),
		ListTypeAttributes:      g.chance(on),
		OptionalNodeOperations:  g.chance(on),
		PartitionableDevices:    g.chance(on),
		PrioritizedList:         g.chance(on),
	}
	if g.chance(35) { // what the incubating allocator has
		f.CompatibilityGroups, f.DerivedAttributes = false, false
		f.ListTypeAttributes, f.OptionalNodeOperations = false, false
	}
	if g.chance(15) { // what the stable allocator has
		f.CompatibilityGroups, f.DerivedAttributes = false, false
		f.ListTypeAttributes, f.OptionalNodeOperations = false, false
		f.DeviceBindingAndStatus, f.ConsumableCapacity = false, false
		f.FractionalCapacityRange = false
	}
	if !f.ConsumableCapacity { // as the gates depend on each other
		f.FractionalCapacityRange = false
	}
	if !f.PartitionableDevices {
		f.CompatibilityGroups = false
	}
	g.features = f
}

// generate makes the world of an index; every index by itself.
func generate(seed, index uint64) *World {
	g := newGenerator(seed, index)
	g.chooseThemes()
	g.chooseFeatures()
	g.drivers = []string{"a.example.com"}
	if g.chance(50) {
		g.drivers = append(g.drivers, "b.example.com")
	}
	g.world = &World{ID: fmt.Sprintf("%d/%d", seed, index), Node: g.node(), Features: g.features}
	g.addSlices()
	g.addClasses()
	g.addClaims()
	g.addAllocated()
	g.addCharges()
	g.addTaintRules()
	g.Shuffle(len(g.world.Slices), func(i, j int) {
		g.world.Slices[i], g.world.Slices[j] = g.world.Slices[j], g.world.Slices[i]
	})
	return g.world
}
