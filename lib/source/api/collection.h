// SPDX-License-Identifier: Apache-2.0
//
// Which objects are asked for, and how the requests for them read.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace devmgr::apiserver {

/// A type of objects at the server, or those of it that a selector takes.
struct Collection {
  std::string path;         ///< `/api/v1/pods`
  std::string api_version;  ///< `v1`, `resource.k8s.io/v1`
  std::string kind;         ///< `Pod`
  std::string field_selector;
  friend bool operator==(const Collection&, const Collection&) = default;
};

/// What is to be sent; a GET unless it has another method.
struct ApiRequest {
  enum class Kind { kGet, kList, kWatch };
  enum class Method { kGet, kPost, kPatch, kDelete, kPut };
  Kind kind = Kind::kGet;
  std::string target;  ///< Path and query.
  std::chrono::seconds deadline{30};
  /// Of the body, after decompression; a watch has none.
  std::size_t max_bytes = 0;
  Method method = Method::kGet;
  std::string content_type;  ///< Of what is sent.
  std::string content;       ///< Empty: nothing is sent.
};

/// Names and values of a query, in order.
using Query = std::vector<std::pair<std::string_view, std::string>>;

/// Path and query, percent-encoded where it has to be.
std::string TargetOf(std::string_view path, const Query& query);

/// One segment of a path, percent-encoded.
std::string PathSegment(std::string_view text);

Collection PodsOfNode(const std::string& node);
/// A collection of the group resource.k8s.io in this version.
Collection ResourceCollection(std::string_view version, std::string_view kind);
/// The path of one claim.
std::string ClaimPath(std::string_view version, const std::string& ns,
                      const std::string& name);

}  // namespace devmgr::apiserver
