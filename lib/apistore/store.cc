// SPDX-License-Identifier: Apache-2.0
#include "apistore/store.h"

#include <fmt/core.h>

#include <cassert>
#include <utility>

#include "common/status.h"

namespace devmgr::apistore {

Store::Store(std::vector<ResourceType> types, Options options)
    : types_(std::move(types)),
      options_(std::move(options)),
      revision_(options_.first_revision),
      history_(options_.history_changes, options_.history_bytes) {
  assert(options_.random && "a store needs a source of random bits");
  history_.BeginAt(revision_);
}

const ResourceType* Store::FindType(std::string_view group,
                                    std::string_view resource) const {
  for (const ResourceType& type : types_) {
    if (type.group == group && type.resource == resource) return &type;
  }
  return nullptr;
}

const Store::Table& Store::TableOf(const ResourceType& type) const {
  static const Table kEmpty;
  const auto it = tables_.find(&type);
  return it == tables_.end() ? kEmpty : it->second;
}

Answer Store::Shown(const Target& target, const Json& object, int code) const {
  Answer answer;
  answer.code = code;
  answer.body = InVersion(*target.type, target.version, object);
  return answer;
}

ApiError Store::NotHere(const Target& target) const {
  return NotFound(*target.type, target.name);
}

Answer Store::Get(const Target& target,
                  std::string_view resource_version) const {
  std::uint64_t revision = 0;
  if (const auto error = CheckVersion(resource_version, revision)) {
    return Refuse(*error);
  }
  const Table& table = TableOf(*target.type);
  const auto it = table.find({target.ns, target.name});
  if (it == table.end()) return Refuse(NotHere(target));
  return Shown(target, *it->second.object);
}

Answer Store::ShowCommitted(const Target& target, const Committed& committed,
                            int code) const {
  if (committed.error.has_value()) return Refuse(*committed.error);
  return Shown(target, *committed.object, code);
}

Store::Committed Store::Commit(const ResourceType& type, const ObjectKey& key,
                               std::optional<Json> after, DeviceOwners owners) {
  Table& table = TableOf(type);
  const auto it = table.find(key);
  ObjectPtr before = it == table.end() ? nullptr : it->second.object;
  const std::uint64_t revision = ++revision_;
  ObjectPtr stored;
  if (after.has_value()) {
    (*after)["metadata"]["resourceVersion"] = std::to_string(revision);
    stored = std::make_shared<const Json>(*std::move(after));
  }
  if (options_.persist) {
    const absl::Status status = options_.persist(
        {revision, type.group, type.resource, key, stored, owners});
    if (!status.ok()) {
      return {Unavailable(fmt::format("the change cannot be made durable: {}",
                                      MessageOf(status)),
                          1),
              nullptr};
    }
  }
  if (stored != nullptr) {
    table[key] = Entry{stored, std::move(owners)};
  } else if (it != table.end()) {
    table.erase(it);
  }
  const auto change =
      std::make_shared<const Change>(type, revision, std::move(before), stored);
  history_.Add(change);
  std::size_t kept = 0;
  for (Stream& entry : streams_) {
    const std::shared_ptr<WatchStream> stream = entry.stream.lock();
    if (stream == nullptr) continue;
    if (stream->target().type == &type) stream->Offer(*change);
    streams_[kept++] = entry;
  }
  streams_.resize(kept);
  return {std::nullopt, std::move(stored)};
}

std::size_t Store::watches() const {
  std::size_t count = 0;
  for (const Stream& entry : streams_) count += entry.stream.expired() ? 0 : 1;
  return count;
}

}  // namespace devmgr::apistore
