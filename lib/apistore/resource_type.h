// SPDX-License-Identifier: Apache-2.0
//
// The types of a store: a table, one row per type. Nothing else in this room
// knows a type by its name.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apistore/answer.h"

namespace devmgr::apistore {

/// A field that field selectors may name.
struct SelectableField {
  std::string label;    ///< `spec.nodeName`
  std::string pointer;  ///< `/spec/nodeName`
  std::string absent;   ///< What an object without the field has.
};

/// A version in which a type is read and written. All versions show one store.
struct ServedVersion {
  std::string name;
  /// From this version to the first of the type, which is the one stored, and
  /// back. Null where they are alike. They leave alone what is not as it
  /// should be.
  void (*to_stored)(Json& object) = nullptr;
  void (*from_stored)(Json& object) = nullptr;
};

struct ResourceType {
  std::string group;  ///< Empty for the core group.
  std::vector<ServedVersion> versions;
  std::string kind;
  std::string resource;  ///< `resourceslices`
  std::string singular;
  bool namespaced = false;
  /// Has the subresource `status`.
  bool has_status = false;
  /// A create may bring a status: a kubelet creates its node with one.
  bool status_on_create = false;
  /// Has `metadata.generation`.
  bool has_generation = true;
  /// A delete without a grace period of 0 leaves an object with a node to its
  /// node: it gets a deletionTimestamp and stays.
  bool graceful_delete = false;
  /// Strategic merges are known (strategic_merge.h).
  bool has_strategic_merge = false;
  /// The status takes the minimal form of server-side apply
  /// (device_status.h).
  bool has_device_status = false;
  /// Besides `metadata.name` and, where namespaced, `metadata.namespace`.
  std::vector<SelectableField> fields;
  /// JSON pointers of fields that no update changes.
  std::vector<std::string> immutable;
  /// Sets defaults of what is to be stored, and says what is wrong with it.
  /// `old`: what is stored now, null for a create. May be empty.
  std::function<std::vector<Cause>(Json& object, const Json* old,
                                   std::string_view now)>
      admit;

  /// `v1`, or `resource.k8s.io/v1`.
  std::string ApiVersion(std::size_t version) const;
  /// `pods`, or `resourceslices.resource.k8s.io`: how errors name it.
  std::string QualifiedResource() const;
};

/// What a request is about.
struct Target {
  const ResourceType* type = nullptr;
  std::size_t version = 0;  ///< Index into the versions of the type.
  std::string ns;           ///< Empty: all namespaces, or none.
  std::string name;         ///< Empty: the collection.
};

/// Pods, nodes, claims, slices, classes, events and leases. Those of
/// `resource.k8s.io` are served as v1, v1beta2 and v1beta1 and stored as v1.
std::vector<ResourceType> BuiltinTypes();

// Refusals about an object of a type.
ApiError NotFound(const ResourceType& type, std::string_view name);
ApiError AlreadyExists(const ResourceType& type, std::string_view name);
ApiError Conflict(const ResourceType& type, std::string_view name,
                  std::string_view detail);
ApiError Invalid(const ResourceType& type, std::string_view name,
                 std::vector<Cause> causes);

}  // namespace devmgr::apistore
