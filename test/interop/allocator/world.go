// SPDX-License-Identifier: Apache-2.0
package main

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
)

const apiVersion = "resource.k8s.io/v1"

// World is everything that one allocation depends on, and what became of it.
type World struct {
	// ID is seed/index of a generated world.
	ID      string                       `json:"id,omitempty"`
	Node    *corev1.Node                 `json:"node"`
	Slices  []*resourceapi.ResourceSlice `json:"slices"`
	Classes []*resourceapi.DeviceClass   `json:"classes"`
	Claims  []*resourceapi.ResourceClaim `json:"claims"`
	// Allocated are claims with an allocation in their status.
	Allocated []*resourceapi.ResourceClaim `json:"allocated,omitempty"`
	// Charges are what was recorded with allocations, by UID of the claim.
	Charges    map[types.UID][]Charge         `json:"charges,omitempty"`
	TaintRules []*resourceapi.DeviceTaintRule `json:"taintRules,omitempty"`
	Features   structured.Features            `json:"features"`

	// Expect is the answer of the newest allocator.
	Expect *Outcome `json:"expect,omitempty"`
	// AsCharged is its answer where slices say of devices that are held what was
	// recorded, if that differs from what they say now.
	AsCharged *Outcome `json:"asCharged,omitempty"`
	// Default is the name of the allocator that these features choose.
	Default string `json:"default,omitempty"`
	// Variants are the answers of the other allocators, where they differ.
	Variants map[string]*Outcome `json:"variants,omitempty"`
	// Decides names the rules without which the outcome would be another.
	Decides []string `json:"decides,omitempty"`
}

// Outcome is the answer of an allocator.
type Outcome struct {
	Result      string                         `json:"result"`
	Allocations []resourceapi.AllocationResult `json:"allocations,omitempty"`
	Error       string                         `json:"error,omitempty"`
	Steps       int                            `json:"steps"`
}

// The classes of results.
const (
	resultSolved      = "solved"
	resultNone        = "none"
	resultHereNotNow  = "here-not-now"
	resultError       = "error"
	resultInterrupted = "interrupted"
)

// copyOf is a copy without an outcome that shares nothing with w.
func copyOf(w *World) *World {
	result := &World{ID: w.ID, Node: w.Node.DeepCopy(), Features: w.Features}
	for _, slice := range w.Slices {
		result.Slices = append(result.Slices, slice.DeepCopy())
	}
	for _, class := range w.Classes {
		result.Classes = append(result.Classes, class.DeepCopy())
	}
	for _, claim := range w.Claims {
		result.Claims = append(result.Claims, claim.DeepCopy())
	}
	for _, claim := range w.Allocated {
		result.Allocated = append(result.Allocated, claim.DeepCopy())
	}
	for _, rule := range w.TaintRules {
		result.TaintRules = append(result.TaintRules, rule.DeepCopy())
	}
	result.Charges = w.Charges
	return result
}

func kind(name string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: name}
}

func eachDevice(w *World, visit func(*resourceapi.ResourceSlice, *resourceapi.Device)) {
	for _, slice := range w.Slices {
		for i := range slice.Spec.Devices {
			visit(slice, &slice.Spec.Devices[i])
		}
	}
}

func deviceCount(w *World) int {
	count := 0
	eachDevice(w, func(*resourceapi.ResourceSlice, *resourceapi.Device) { count++ })
	return count
}
