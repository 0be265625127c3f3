// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>
#include <devmgr/objects.h>

#include <map>
#include <string>
#include <vector>

namespace devmgr::claim {

/// Which class has an extended resource by its explicit name. Of several the
/// newest; of those of one age, or of which it is not known, the first by name.
/// By nothing but the classes that there are, so it does not matter in which
/// order they came. The classes are borrowed.
std::map<ResourceName, const DeviceClass*> ClassesByResource(
    const ObjectMap<DeviceClass>& classes);

/// Drivers that the class's selectors name in so many words
/// (`device.driver == "..."`), in their order. Nothing is evaluated.
std::vector<std::string> DriversNamedBy(const DeviceClass& item);

}  // namespace devmgr::claim
