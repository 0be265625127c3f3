// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func (g *Generator) addClaims() {
	for range pick(g, 1, 1, 1, 1, 1, 2, 2, 3) {
		g.world.Claims = append(g.world.Claims, g.claim())
	}
}

func (g *Generator) newClaim(name string) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		TypeMeta:   kind("ResourceClaim"),
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(g.uid())},
	}
}

func (g *Generator) claim() *resourceapi.ResourceClaim {
	claim := g.newClaim(g.name("claim"))
	devices := &claim.Spec.Devices
	for i := range pick(g, 1, 1, 1, 2, 2, 2, 3, 4) {
		devices.Requests = append(devices.Requests, g.request(fmt.Sprintf("q%d", i)))
	}
	names := requestNames(claim)
	if g.themes[themeConstraints] {
		for range g.between(0, 3) {
			devices.Constraints = append(devices.Constraints, g.constraint(names))
		}
	}
	if g.themes[themeConfig] {
		for range g.between(0, 3) {
			entry := resourceapi.DeviceClaimConfiguration{DeviceConfiguration: g.opaque()}
			if g.chance(70) {
				entry.Requests = g.names(names)
			}
			devices.Config = append(devices.Config, entry)
		}
	}
	if g.themes[themeDerived] && (g.features.DerivedAttributes || g.chance(5)) {
		g.derive(devices)
	}
	return claim
}

// requestNames are all names that constraints and configuration may use.
func requestNames(claim *resourceapi.ResourceClaim) []string {
	var result []string
	for _, request := range claim.Spec.Devices.Requests {
		result = append(result, request.Name)
		for _, alternative := range request.FirstAvailable {
			result = append(result, request.Name+"/"+alternative.Name)
		}
	}
	return result
}

func (g *Generator) names(all []string) []string { return some(g, g.between(1, len(all)), all...) }

func (g *Generator) count() int64 {
	if g.themes[themeLimit] {
		return int64(pick(g, 1, 8, 16, 17, 31, 32, 33, 500))
	}
	return int64(pick(g, 1, 1, 1, 1, 1, 1, 2, 2, 3))
}

// mode is that of a request or of an alternative, with the count as defaulted.
func (g *Generator) mode() (resourceapi.DeviceAllocationMode, int64) {
	switch {
	case g.themes[themeMistakes] && g.chance(3):
		return "Future", 0
	case g.themes[themeAll] && g.chance(60):
		return resourceapi.DeviceAllocationModeAll, 0
	}
	return resourceapi.DeviceAllocationModeExactCount, g.count()
}

func (g *Generator) request(name string) resourceapi.DeviceRequest {
	request := resourceapi.DeviceRequest{Name: name}
	if g.themes[themeAlternatives] && g.chance(60) {
		for i := range g.between(1, 4) {
			mode, count := g.mode()
			request.FirstAvailable = append(request.FirstAvailable, resourceapi.DeviceSubRequest{
				Name:            fmt.Sprintf("s%d", i),
				DeviceClassName: g.className(),
				Selectors:       g.selectors(),
				AllocationMode:  mode,
				Count:           count,
				Tolerations:     g.tolerations(),
				Capacity:        g.capacityRequest(),
			})
		}
		return request
	}
	mode, count := g.mode()
	request.Exactly = &resourceapi.ExactDeviceRequest{
		DeviceClassName: g.className(),
		Selectors:       g.selectors(),
		AllocationMode:  mode,
		Count:           count,
		Tolerations:     g.tolerations(),
		Capacity:        g.capacityRequest(),
	}
	if g.themes[themeAdmin] && g.chance(50) {
		request.Exactly.AdminAccess = pointer(g.chance(90))
	}
	return request
}

var constrainedAttributes = []resourceapi.FullyQualifiedName{
	"a.example.com/numa", "a.example.com/numa", "a.example.com/index", "a.example.com/model", "a.example.com/version",
	"a.example.com/flag", "std.example.org/root", "std.example.org/root", "b.example.com/numa",
}

func (g *Generator) constraint(names []string) resourceapi.DeviceConstraint {
	var result resourceapi.DeviceConstraint
	if g.chance(50) {
		result.Requests = g.names(names)
	}
	switch attribute := pick(g, constrainedAttributes...); {
	case g.themes[themeMistakes] && g.chance(3):
		// A kind of constraint from the future.
	case g.chance(65):
		result.MatchAttribute = &attribute
	default:
		result.DistinctAttribute = &attribute
	}
	return result
}

// derive adds computed attributes and constraints over them.
func (g *Generator) derive(devices *resourceapi.DeviceClaim) {
	const name = resourceapi.FullyQualifiedName("derived.example.org/group")
	expression := func() []resourceapi.DeviceDerivedAttribute {
		if g.chance(15) {
			return nil
		}
		return []resourceapi.DeviceDerivedAttribute{{Name: name, Expression: pick(g,
			`device.attributes["a.example.com"].?index.orValue(7) / 2`,
			`device.attributes["a.example.com"].?model.orValue("none")`,
			`device.driver`,
			`device.attributes["a.example.com"].?index.orValue(7) > 1`,
			`device.attributes["a.example.com"].?index.orValue(7) % 2 == 0 ? "even" : "odd"`,
			`[int(device.attributes["a.example.com"].?index.orValue(7)) / 2, 9]`,
			`device.attributes["a.example.com"].?index.orValue(7) > 1 ? ["x"] : []`,
			`semver(device.attributes["a.example.com"].?index.orValue(7) > 1 ? "1.0.0" : "2.0.0")`,
		)}}
	}
	for i := range devices.Requests {
		request := &devices.Requests[i]
		if request.Exactly != nil {
			request.Exactly.DerivedAttributes = expression()
		}
		for j := range request.FirstAvailable {
			request.FirstAvailable[j].DerivedAttributes = expression()
		}
	}
	constraint := resourceapi.DeviceConstraint{MatchAttribute: pointer(name)}
	if g.chance(40) {
		constraint = resourceapi.DeviceConstraint{DistinctAttribute: pointer(name)}
	}
	devices.Constraints = append(devices.Constraints, constraint)
}
