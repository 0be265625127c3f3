// SPDX-License-Identifier: Apache-2.0
#include "endpoint/slice_rules.h"

#include <fmt/core.h>

#include <cstddef>
#include <utility>

#include "api/field.h"
#include "api/parser.h"
#include "api/problems.h"
#include "api/resource.h"
#include "apistore/object_meta.h"
#include "endpoint/wire_schema.h"

namespace devmgr::endpoint {
namespace {

using apistore::Cause;
using apistore::Json;

/// A body may have a field more every few bytes.
constexpr std::size_t kMaxListed = 100;

void DropUnknown(Json& object, const WireMessage& message, bool is_root,
                 const std::string& path, std::vector<std::string>& dropped);

void DropBelow(Json& value, const WireField& field, const std::string& path,
               std::vector<std::string>& dropped) {
  if (field.type != WireType::kMessage) return;
  if (field.shape == WireShape::kOne) {
    DropUnknown(value, *field.message, false, path, dropped);
  } else if (field.shape == WireShape::kList && value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      DropUnknown(value[i], *field.message, false,
                  fmt::format("{}[{}]", path, i), dropped);
    }
  } else if (field.shape == WireShape::kMap && value.is_object()) {
    for (auto& [key, entry] : value.items()) {
      DropUnknown(entry, *field.message, false, fmt::format("{}.{}", path, key),
                  dropped);
    }
  }
}

void DropUnknown(Json& object, const WireMessage& message, bool is_root,
                 const std::string& path, std::vector<std::string>& dropped) {
  if (!object.is_object()) return;
  for (auto it = object.begin(); it != object.end();) {
    const WireField* known = nullptr;
    for (const WireField& field : message.fields) {
      if (field.name == it.key()) known = &field;
    }
    const std::string where = path.empty() ? it.key() : path + "." + it.key();
    if (known != nullptr) {
      DropBelow(it.value(), *known, where, dropped);
      ++it;
    } else if (is_root && (it.key() == "apiVersion" || it.key() == "kind")) {
      ++it;
    } else {
      if (dropped.size() < kMaxListed) dropped.push_back(where);
      it = object.erase(it);
    }
  }
}

}  // namespace

std::vector<Cause> CheckSliceRules(const Json& slice,
                                   std::string_view node_name) {
  const api::ParsedText parsed =
      api::ParseText(apistore::Dump(slice), /*json_only=*/true);
  if (!parsed.error.empty() || parsed.documents.empty()) {
    return {{"FieldValueInvalid", parsed.error, ""}};
  }
  api::Problems problems("");
  api::DecodeResourceSlice(api::Field(*parsed.documents[0], "", problems),
                           api::ResourceVersion::kV1, node_name);
  std::vector<Cause> causes;
  for (ManifestProblem& problem : problems.TakeErrors()) {
    causes.push_back({"FieldValueInvalid", std::move(problem.message),
                      std::move(problem.field)});
  }
  return causes;
}

std::vector<Cause> CheckNodeOwners(const Json& object,
                                   std::string_view node_name,
                                   std::string_view node_uid) {
  static const Json::json_pointer kOwners("/metadata/ownerReferences");
  std::vector<Cause> causes;
  if (!object.contains(kOwners) || !object.at(kOwners).is_array()) return {};
  std::size_t index = 0;
  for (const Json& owner : object.at(kOwners)) {
    const std::string field =
        fmt::format("metadata.ownerReferences[{}]", index++);
    if (!owner.is_object() || apistore::TextField(owner, "kind") != "Node") {
      continue;
    }
    const std::string name = apistore::TextField(owner, "name");
    const std::string uid = apistore::TextField(owner, "uid");
    if (name == node_name && uid == node_uid) continue;
    causes.push_back(
        {"FieldValueInvalid",
         fmt::format("the owner is node \"{}\" with the UID \"{}\", and this "
                     "is node \"{}\" with the UID \"{}\"",
                     name, uid, node_name, node_uid),
         field});
  }
  return causes;
}

std::vector<std::string> DropUnknownFields(Json& body) {
  std::vector<std::string> dropped;
  if (!body.is_object()) return dropped;
  const WireMessage* message =
      FindWireMessage(apistore::TextField(body, "apiVersion"),
                      apistore::TextField(body, "kind"));
  if (message != nullptr) DropUnknown(body, *message, true, "", dropped);
  return dropped;
}

}  // namespace devmgr::endpoint
