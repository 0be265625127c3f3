// SPDX-License-Identifier: Apache-2.0
//
// What a namespace may use, in the shape of core/v1.
#pragma once

#include <devmgr/object_meta.h>

#include <map>
#include <string>

namespace devmgr {

/// A quota, as far as it limits devices and claims.
struct ResourceQuota {
  ObjectMeta metadata;
  /// `spec.hard` of devices by class (`<class>.deviceclass.resource.k8s.io/
  /// devices`) and by resource (`requests.<resource>`), and of the number of
  /// claims (`count/resourceclaims.resource.k8s.io`). Other keys are left out.
  std::map<std::string, Quantity> hard;
  friend bool operator==(const ResourceQuota&, const ResourceQuota&) = default;
};

}  // namespace devmgr
