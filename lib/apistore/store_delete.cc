// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "apistore/store.h"

namespace devmgr::apistore {
namespace {

/// What a pod gets where the request does not say.
constexpr std::int64_t kDefaultGraceSeconds = 30;
/// What is asked for beyond this is as good as for ever.
constexpr std::int64_t kMaxGraceSeconds = 1'000'000'000;

std::int64_t AskedGrace(const ResourceType& type, const Json& object,
                        const DeleteOptions& options) {
  static const Json::json_pointer kNode("/spec/nodeName");
  static const Json::json_pointer kGrace("/spec/terminationGracePeriodSeconds");
  if (!type.graceful_delete) return 0;
  // A pod that no node has is gone at once.
  const Json* node = object.contains(kNode) ? &object.at(kNode) : nullptr;
  if (node == nullptr || !node->is_string() ||
      node->get_ref<const std::string&>().empty()) {
    return 0;
  }
  if (options.grace_period_seconds.has_value()) {
    return *options.grace_period_seconds;
  }
  if (object.contains(kGrace) && object.at(kGrace).is_number_integer()) {
    return object.at(kGrace).get<std::int64_t>();
  }
  return kDefaultGraceSeconds;
}

Json DeletedStatus(const ResourceType& type, const Json& object) {
  Json details = {{"name", MetaText(object, "name")},
                  {"kind", type.resource},
                  {"uid", MetaText(object, "uid")}};
  if (!type.group.empty()) details["group"] = type.group;
  return {{"kind", "Status"},
          {"apiVersion", "v1"},
          {"metadata", Json::object()},
          {"status", "Success"},
          {"details", std::move(details)}};
}

}  // namespace

std::optional<ApiError> Store::CheckPreconditions(
    const Target& target, const Json& object,
    const DeleteOptions& options) const {
  const std::string uid = MetaText(object, "uid");
  if (!options.uid.empty() && options.uid != uid) {
    return Conflict(*target.type, target.name,
                    fmt::format("Precondition failed: UID in precondition: {}, "
                                "UID in object meta: {}",
                                options.uid, uid));
  }
  const std::string version = MetaText(object, "resourceVersion");
  if (!options.resource_version.empty() &&
      options.resource_version != version) {
    return Conflict(
        *target.type, target.name,
        fmt::format("Precondition failed: ResourceVersion in precondition: {}, "
                    "ResourceVersion in object meta: {}",
                    options.resource_version, version));
  }
  return std::nullopt;
}

Answer Store::Delete(const Target& target, const DeleteOptions& options) {
  return DeleteOne(target, options);
}

Answer Store::DeleteOne(const Target& target, const DeleteOptions& options) {
  const ResourceType& type = *target.type;
  const ObjectKey key{target.ns, target.name};
  const Table& table = TableOf(type);
  const auto it = table.find(key);
  if (it == table.end()) return Refuse(NotHere(target));
  const ObjectPtr object = it->second.object;
  if (options.authorize) {
    if (auto error = options.authorize(nullptr, object.get())) {
      return Refuse(*error);
    }
  }
  if (auto error = CheckPreconditions(target, *object, options)) {
    return Refuse(*error);
  }
  const std::int64_t grace = std::clamp<std::int64_t>(
      AskedGrace(type, *object, options), 0, kMaxGraceSeconds);
  if (!HasFinalizers(*object) && grace == 0) {
    Answer answer;
    answer.body = DeletedStatus(type, *object);
    if (options.dry_run) return answer;
    const Committed gone = Commit(type, key, std::nullopt, {});
    return gone.error.has_value() ? Refuse(*gone.error) : answer;
  }
  if (!MetaText(*object, "deletionTimestamp").empty() &&
      MetaNumber(*object, "deletionGracePeriodSeconds") <= grace) {
    return Shown(target, *object);  // On its way already.
  }
  Json marked = *object;
  marked["metadata"]["deletionTimestamp"] = TimeText(options.now + grace);
  marked["metadata"]["deletionGracePeriodSeconds"] = grace;
  if (options.dry_run) return Shown(target, marked);
  return ShowCommitted(target,
                       Commit(type, key, std::move(marked), it->second.owners));
}

Answer Store::DeleteCollection(const Target& target,
                               const ListOptions& selection,
                               const DeleteOptions& options) {
  Answer list = List(target, selection);
  if (!list.ok()) return list;
  for (const Json& item : list.body["items"]) {
    Target one = target;
    one.ns = MetaText(item, "namespace");
    one.name = MetaText(item, "name");
    const Answer answer = DeleteOne(one, options);
    if (!answer.ok()) return answer;
  }
  return list;
}

}  // namespace devmgr::apistore
