// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func celSelector(expression string) resourceapi.DeviceSelector {
	return resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}
}

func (g *Generator) opaque() resourceapi.DeviceConfiguration {
	g.serial++
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver:     pick(g, g.drivers...),
		Parameters: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"n":%d}`, g.serial)},
	}}
}

// addClasses: `any`, one for each driver, and `picky`, which looks at attributes.
func (g *Generator) addClasses() {
	add := func(name string, selectors ...resourceapi.DeviceSelector) {
		class := &resourceapi.DeviceClass{
			TypeMeta:   kind("DeviceClass"),
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       resourceapi.DeviceClassSpec{Selectors: selectors},
		}
		if g.themes[themeConfig] {
			for range g.between(0, 2) {
				class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: g.opaque()})
			}
		}
		g.world.Classes = append(g.world.Classes, class)
	}
	add("any")
	for _, driver := range g.drivers {
		add("of-"+driver, celSelector(fmt.Sprintf(`device.driver == %q`, driver)))
	}
	add("picky", celSelector(`device.driver != "z.example.com"`), g.selector())
}

func (g *Generator) className() string {
	switch {
	case g.themes[themeMistakes] && g.chance(8):
		return "no-such-class"
	case g.themes[themeSelectors] && g.chance(40):
		return "picky"
	case g.chance(50):
		return "any"
	}
	return "of-" + pick(g, g.drivers...)
}

// selector holds for some devices and not for others; some fail on devices of
// another driver.
func (g *Generator) selector() resourceapi.DeviceSelector {
	driver := pick(g, g.drivers...)
	attributes := fmt.Sprintf(`device.attributes[%q]`, driver)
	expressions := []string{
		attributes + `.?model.orValue("") == "m0"`,
		attributes + `.?index.orValue(0) >= ` + pick(g, "1", "2"),
		attributes + `.?index.orValue(9) < ` + pick(g, "2", "3"),
		`"model" in ` + attributes,
		fmt.Sprintf(`device.driver == %q`, driver),
		fmt.Sprintf(`device.driver == %q && %s.model == "m0"`, driver, attributes),
		fmt.Sprintf(`device.driver != %q || device.capacity[%q].?memory.orValue(quantity("0")).compareTo(quantity("8Gi")) >= 0`,
			driver, driver),
		attributes + `.?version.orValue(semver("1.0.0")).isLessThan(semver("2.0.0"))`,
		`device.attributes["std.example.org"].?root.orValue("") != "x"`,
	}
	if g.features.ConsumableCapacity || g.themes[themeMistakes] {
		expressions = append(expressions, `!device.allowMultipleAllocations`, `device.allowMultipleAllocations`)
	}
	if g.features.ListTypeAttributes && g.themes[themeLists] {
		expressions = append(expressions, attributes+`.?numa.orValue([5]).includes(1)`,
			attributes+`.?numa.orValue([5]).includes(0)`)
	}
	if g.themes[themeMistakes] {
		expressions = append(expressions, attributes+`.nope == 1`, attributes+`.model > 1`, `device.driver`)
	}
	return celSelector(pick(g, expressions...))
}

func (g *Generator) selectors() []resourceapi.DeviceSelector {
	var result []resourceapi.DeviceSelector
	if g.themes[themeSelectors] {
		for range g.between(0, 2) {
			result = append(result, g.selector())
		}
	}
	return result
}
