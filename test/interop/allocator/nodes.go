// SPDX-License-Identifier: Apache-2.0
package main

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	thisNode  = "n1"
	otherNode = "n2"
)

func (g *Generator) node() *corev1.Node {
	node := &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{
			Name:   thisNode,
			Labels: map[string]string{"region": "r1", "planet": "earth", "rank": "5"},
		},
	}
	if !g.themes[themeSkipOperations] || g.chance(75) {
		node.Status.DeclaredFeatures = []string{"DRAOptionalNodeOperations"}
	}
	return node
}

func requirement(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
}

// nodeSelector has one term; most pass the node.
func (g *Generator) nodeSelector() *corev1.NodeSelector {
	passing := []corev1.NodeSelectorRequirement{
		requirement("region", corev1.NodeSelectorOpIn, "r1"),
		requirement("region", corev1.NodeSelectorOpIn, "r2", "r1"),
		requirement("region", corev1.NodeSelectorOpIn, "r1", "r2"),
		requirement("region", corev1.NodeSelectorOpNotIn, "r2"),
		requirement("planet", corev1.NodeSelectorOpExists),
		requirement("moon", corev1.NodeSelectorOpDoesNotExist),
		requirement("moon", corev1.NodeSelectorOpNotIn, "x"),
		requirement("rank", corev1.NodeSelectorOpGt, "4"),
		requirement("rank", corev1.NodeSelectorOpLt, "6"),
	}
	failing := []corev1.NodeSelectorRequirement{
		requirement("region", corev1.NodeSelectorOpIn, "r2"),
		requirement("region", corev1.NodeSelectorOpDoesNotExist),
		requirement("moon", corev1.NodeSelectorOpExists),
		requirement("rank", corev1.NodeSelectorOpGt, "5"),
		requirement("rank", corev1.NodeSelectorOpLt, "5"),
		requirement("region", corev1.NodeSelectorOpGt, "1"),
		requirement("planet", corev1.NodeSelectorOpNotIn, "earth"),
	}
	var term corev1.NodeSelectorTerm
	for range g.between(1, 3) {
		if g.chance(8) {
			term.MatchExpressions = append(term.MatchExpressions, pick(g, failing...))
		} else {
			term.MatchExpressions = append(term.MatchExpressions, pick(g, passing...))
		}
	}
	if g.chance(25) {
		term.MatchFields = append(term.MatchFields,
			requirement("metadata.name", corev1.NodeSelectorOpIn, pick(g, thisNode, thisNode, thisNode, otherNode)))
		if g.chance(50) {
			term.MatchExpressions = nil
		}
	}
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}
}

// selectNode chooses the nodes that may use a slice.
func (g *Generator) selectNode(spec *resourceapi.ResourceSliceSpec) {
	kind := "name"
	if g.themes[themeNodes] {
		kind = pick(g, "name", "other", "all", "selector", "selector")
	} else if g.chance(20) {
		kind = "all"
	}
	if g.themes[themePerDevice] && g.chance(60) {
		kind = "device"
	}
	switch kind {
	case "name":
		spec.NodeName = pointer(thisNode)
	case "other":
		spec.NodeName = pointer(otherNode)
	case "all":
		spec.AllNodes = pointer(true)
	case "selector":
		spec.NodeSelector = g.nodeSelector()
	case "device":
		spec.PerDeviceNodeSelection = pointer(true)
	}
}

// selectNodeOfDevice does so for a device whose slice leaves it to devices.
func (g *Generator) selectNodeOfDevice(device *resourceapi.Device) {
	switch pick(g, "name", "name", "other", "all", "selector") {
	case "name":
		device.NodeName = pointer(thisNode)
	case "other":
		device.NodeName = pointer(otherNode)
	case "all":
		device.AllNodes = pointer(true)
	case "selector":
		device.NodeSelector = g.nodeSelector()
	}
}
