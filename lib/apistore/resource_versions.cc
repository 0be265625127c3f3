// SPDX-License-Identifier: Apache-2.0
#include "apistore/resource_versions.h"

#include <string>
#include <utility>

namespace devmgr::apistore {
namespace {

/// The list at `pointer`, or null.
Json* ListAt(Json& object, const char* pointer) {
  const Json::json_pointer path(pointer);
  if (!object.contains(path)) return nullptr;
  Json& list = object[path];
  return list.is_array() ? &list : nullptr;
}

/// Moves what `inner` has up into `outer`.
void Lift(Json& outer, const char* inner) {
  const auto it = outer.find(inner);
  if (it == outer.end() || !it->is_object()) return;
  const Json content = std::move(*it);
  outer.erase(it);
  outer.update(content);
}

/// Moves all but `name` and `stays` down into `inner`.
void Sink(Json& outer, const char* inner, const char* stays) {
  if (outer.contains(inner)) return;
  Json content = Json::object();
  Json rest = Json::object();
  for (auto& [key, value] : outer.items()) {
    (key == "name" || key == stays ? rest : content)[key] = std::move(value);
  }
  if (!content.empty()) rest[inner] = std::move(content);
  outer = std::move(rest);
}

}  // namespace

void SliceFromBeta1(Json& slice) {
  if (Json* devices = ListAt(slice, "/spec/devices")) {
    for (Json& device : *devices) {
      if (device.is_object()) Lift(device, "basic");
    }
  }
}

void SliceToBeta1(Json& slice) {
  if (Json* devices = ListAt(slice, "/spec/devices")) {
    for (Json& device : *devices) {
      if (device.is_object()) Sink(device, "basic", "");
    }
  }
}

void ClaimFromBeta1(Json& claim) {
  if (Json* requests = ListAt(claim, "/spec/devices/requests")) {
    for (Json& request : *requests) {
      if (request.is_object()) Sink(request, "exactly", "firstAvailable");
    }
  }
}

void ClaimToBeta1(Json& claim) {
  if (Json* requests = ListAt(claim, "/spec/devices/requests")) {
    for (Json& request : *requests) {
      if (request.is_object()) Lift(request, "exactly");
    }
  }
}

}  // namespace devmgr::apistore
