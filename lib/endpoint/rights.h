// SPDX-License-Identifier: Apache-2.0
//
// What a driver may read and write: its node, its slices, what it says of the
// devices that it gave to claims, and what belongs to these.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apistore/api_request.h"

namespace devmgr::endpoint {

struct RightsOptions {
  std::string node_name;
  std::string node_uid;
  /// Slices for all nodes, or for those of a selector.
  bool network_pools = false;
  /// Pods of the node may be read.
  bool read_pods = false;
  std::size_t max_slices = 1024;
};

class Rights {
 public:
  explicit Rights(RightsOptions options) : options_(std::move(options)) {}

  /// Whether the driver may ask for this at all: 403 otherwise.
  std::optional<apistore::ApiError> CheckVerb(
      const std::string& driver, const apistore::ApiRequest& request) const;
  /// What applies to the objects that the request is about. It borrows this
  /// and the store.
  apistore::ClientRules RulesFor(const std::string& driver,
                                 const apistore::ApiRequest& request,
                                 const apistore::Store& store) const;
  /// Of a request about one object that is there: claims of others are as if
  /// they were not (404), other objects are refused (403).
  std::optional<apistore::ApiError> CheckVisible(
      const std::string& driver, const apistore::ApiRequest& request,
      const apistore::Json& object) const;
  /// Of an event, whose object must be one that the driver may see.
  std::optional<apistore::ApiError> CheckEvent(
      const std::string& driver, const apistore::Json& event,
      const apistore::Store& store) const;
  /// Answers a SelfSubjectAccessReview.
  apistore::Answer Review(const std::string& driver,
                          const apistore::Json& review) const;

 private:
  bool Allows(std::string_view group, std::string_view resource,
              std::string_view subresource, std::string_view verb) const;
  std::optional<apistore::ApiError> CheckSlice(
      const std::string& driver, const apistore::Json* object,
      const apistore::Json* old, const apistore::Store& store) const;

  const RightsOptions options_;
};

/// Whether the claim has devices of the driver.
bool HasDevicesOf(const apistore::Json& claim, std::string_view driver);

}  // namespace devmgr::endpoint
