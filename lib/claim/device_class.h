// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>
#include <devmgr/objects.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::claim {

/// Which class has an extended resource by its explicit name. Of several the
/// newest; of those of one age, or of which it is not known, the first by name.
/// By nothing but the classes that there are, so it does not matter in which
/// order they came. The classes are borrowed.
std::map<ResourceName, const DeviceClass*> ClassesByResource(
    const ObjectMap<DeviceClass>& classes);

/// The classes by all names that a pod can ask for them with: their explicit
/// ones, and the implicit one of each class, whether it has an explicit one or
/// not. Borrows the classes.
class ResourceClasses {
 public:
  explicit ResourceClasses(const ObjectMap<DeviceClass>& classes)
      : classes_(classes) {}

  /// Null: no class has the name.
  const DeviceClass* Find(const ResourceName& resource) const;

  /// For people, of a name that no class has: why.
  std::string WhyNone(const ResourceName& resource) const;

 private:
  const ObjectMap<DeviceClass>& classes_;
};

/// The class that an implicit name means; empty: it is none.
std::string_view ClassOfImplicitName(std::string_view resource);

/// Drivers that the class's selectors name in so many words
/// (`device.driver == "..."`), in their order. Nothing is evaluated.
std::vector<std::string> DriversNamedBy(const DeviceClass& item);

}  // namespace devmgr::claim
