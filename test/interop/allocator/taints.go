// SPDX-License-Identifier: Apache-2.0
package main

import (
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (g *Generator) taint() resourceapi.DeviceTaint {
	added := metav1.NewTime(time.Unix(1_800_000_000, 0).UTC())
	return resourceapi.DeviceTaint{
		Key:   pick(g, "sick", "busy"),
		Value: pick(g, "", "a", "b"),
		Effect: pick(g, resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNoSchedule,
			resourceapi.DeviceTaintEffectNoExecute, resourceapi.DeviceTaintEffectNone),
		TimeAdded: &added,
	}
}

func (g *Generator) tolerations() []resourceapi.DeviceToleration {
	if !g.themes[themeTaints] {
		return nil
	}
	var result []resourceapi.DeviceToleration
	for range g.between(0, 3) {
		toleration := resourceapi.DeviceToleration{
			Key: pick(g, "sick", "busy"),
			Effect: pick(g, "", "", resourceapi.DeviceTaintEffectNoSchedule,
				resourceapi.DeviceTaintEffectNoExecute),
			Operator: resourceapi.DeviceTolerationOpExists,
		}
		if g.chance(10) {
			toleration.Key = ""
		} else if g.chance(60) {
			toleration.Operator = resourceapi.DeviceTolerationOpEqual
			toleration.Value = pick(g, "", "a", "b")
		}
		if g.chance(20) {
			toleration.TolerationSeconds = pointer(int64(g.between(0, 300)))
		}
		result = append(result, toleration)
	}
	return result
}

func (g *Generator) addTaintRules() {
	if !g.themes[themeTaintRules] {
		return
	}
	for range g.between(1, 3) {
		rule := &resourceapi.DeviceTaintRule{
			TypeMeta:   kind("DeviceTaintRule"),
			ObjectMeta: metav1.ObjectMeta{Name: g.name("rule")},
			Spec:       resourceapi.DeviceTaintRuleSpec{Taint: g.taint()},
		}
		if g.chance(90) {
			selector := &resourceapi.DeviceTaintSelector{}
			if g.chance(50) {
				selector.Driver = pointer(pick(g, "a.example.com", "b.example.com"))
			}
			if g.chance(50) {
				selector.Pool = pointer(pick(g, "p0", "p1"))
			}
			if g.chance(60) {
				selector.Device = pointer(pick(g, "d0", "d1", "d2"))
			}
			rule.Spec.DeviceSelector = selector
		}
		g.world.TaintRules = append(g.world.TaintRules, rule)
	}
}

// patched are the slices with the taints of the rules, as the tracker of
// resourceslice/tracker makes them: applyPatches() there.
func patched(w *World) []*resourceapi.ResourceSlice {
	if len(w.TaintRules) == 0 || !w.Features.DeviceTaints {
		return w.Slices
	}
	var result []*resourceapi.ResourceSlice
	for _, original := range w.Slices {
		slice := original.DeepCopy()
		for _, rule := range w.TaintRules {
			selector := rule.Spec.DeviceSelector
			if selector == nil || selector.Driver != nil && *selector.Driver != slice.Spec.Driver ||
				selector.Pool != nil && *selector.Pool != slice.Spec.Pool.Name {
				continue
			}
			for i := range slice.Spec.Devices {
				device := &slice.Spec.Devices[i]
				if selector.Device == nil || *selector.Device == device.Name {
					device.Taints = append(device.Taints, rule.Spec.Taint)
				}
			}
		}
		result = append(result, slice)
	}
	return result
}
