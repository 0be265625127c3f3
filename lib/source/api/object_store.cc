// SPDX-License-Identifier: Apache-2.0
#include "source/api/object_store.h"

#include <devmgr/cel.h>
#include <fmt/core.h>

#include <utility>

#include "api/pod.h"
#include "source/api/json_view.h"

namespace devmgr::apiserver {
namespace {

const ObjectMeta& MetadataOf(const Object& object) {
  return std::visit(
      [](const auto& kind) -> const ObjectMeta& { return kind.metadata; },
      object);
}

/// The object as the only item of a list, which says what its text may not.
/// Without what is in `managedFields`, of which we read nothing: it can be more
/// than all else.
std::string AsList(const Collection& collection, std::string_view text) {
  const std::string_view managed =
      FindMember(FindMember(text, "metadata"), "managedFields");
  std::string_view begin = text;
  std::string_view end;
  if (managed.starts_with('[') && managed.ends_with(']')) {
    const auto at = static_cast<std::size_t>(managed.data() - text.data());
    begin = text.substr(0, at + 1);
    end = text.substr(at + managed.size() - 1);
  }
  return fmt::format(R"({{"kind":"{}List","apiVersion":"{}","items":[{}{}]}})",
                     collection.kind, collection.api_version, begin, end);
}

/// Whether the object has the kind of the collection, or names none.
bool IsOfKind(const Collection& collection, std::string_view text) {
  const std::string kind = StringMember(text, "kind");
  return kind.empty() || kind == collection.kind;
}

/// Takes the object, or the pod that breaks a rule, out of `decoded`.
void Take(DecodedManifest decoded, StoredObject* stored) {
  if (!decoded.errors.empty()) {
    stored->problem = decoded.errors.front().ToString();
  } else if (!decoded.objects.empty()) {
    Object& object = decoded.objects[0].object;
    // As the kubelet marks pods by where they are from; whatever stands there.
    if (auto* pod = std::get_if<Pod>(&object)) {
      pod->metadata.annotations[api::kConfigSource] = api::kFromApiServer;
    }
    stored->object = std::make_shared<const Object>(std::move(object));
    stored->name = MetadataOf(*stored->object).FullName();
  } else if (!decoded.malformed_pods.empty()) {
    stored->malformed = std::make_shared<const MalformedPod>(
        std::move(decoded.malformed_pods[0]));
    stored->name = stored->malformed->pod.metadata.FullName();
  } else {
    stored->problem = "it is of a kind that is not read";
  }
}

/// Decodes the only item of `list`. An expression that does not compile makes
/// an object of a manifest unusable; of one that a server has accepted it is
/// said.
void DecodeItem(const std::string& list, StoredObject* stored) {
  constexpr std::string_view kFile = "api-server.json";  // Never read as YAML.
  DecodedManifest checked = DecodeCheckedManifest(list, kFile);
  if (checked.errors.empty()) return Take(std::move(checked), stored);
  Take(DecodeManifest(list, kFile), stored);
  if (stored->problem.empty()) {
    stored->remark = checked.errors.front().ToString();
  }
}

/// What was looked at and what was decoded must be one object.
void CheckUid(StoredObject* stored) {
  if (!stored->problem.empty()) return;
  const std::string& uid = stored->object != nullptr
                               ? MetadataOf(*stored->object).uid
                               : stored->malformed->pod.metadata.uid;
  if (uid == stored->uid) return;
  stored->object = nullptr;
  stored->malformed = nullptr;
  stored->problem = "it has two UIDs";
}

}  // namespace

StoredObject DecodeStored(const Collection& collection, std::string_view text) {
  StoredObject stored;
  const std::string_view metadata = FindMember(text, "metadata");
  stored.uid = StringMember(metadata, "uid");
  stored.name = {StringMember(metadata, "namespace"),
                 StringMember(metadata, "name")};
  stored.resource_version = StringMember(metadata, "resourceVersion");
  if (stored.uid.empty()) {
    stored.problem = "it has no UID";
  } else if (!IsOfKind(collection, text)) {
    stored.problem = fmt::format("it is no {}", collection.kind);
  } else {
    DecodeItem(AsList(collection, text), &stored);
    CheckUid(&stored);
  }
  return stored;
}

std::shared_ptr<const StoredObject> ObjectStore::Decode(std::string_view text) {
  const std::string_view metadata = FindMember(text, "metadata");
  const auto known = objects_.find(StringMember(metadata, "uid"));
  const std::string version = StringMember(metadata, "resourceVersion");
  if (known != objects_.end() && !version.empty() &&
      known->second->resource_version == version) {
    return known->second;
  }
  auto stored = std::make_shared<StoredObject>(DecodeStored(collection_, text));
  const bool is_usable = stored->problem.empty();
  const std::string& problem = is_usable ? stored->remark : stored->problem;
  if (problem.empty()) {
    problems_.erase(stored->uid);
  } else {
    problems_[stored->uid] = {
        collection_.kind, stored->name,
        fmt::format("{}: {}", DescribeObject(text), problem)};
  }
  return is_usable || known == objects_.end() ? stored : known->second;
}

void ObjectStore::AddListed(std::string_view text) {
  std::shared_ptr<const StoredObject> object = Decode(text);
  const std::string uid = object->uid;
  listed_.insert_or_assign(uid, std::move(object));
}

void ObjectStore::EndList() {
  std::vector<std::string> gone;
  for (const auto& [uid, object] : objects_) {
    if (listed_.count(uid) == 0) gone.push_back(uid);
  }
  for (const std::string& uid : gone) Erase(uid, /*is_reported=*/false);
  for (const auto& [uid, object] : listed_) Put(object);
  listed_.clear();
  std::erase_if(problems_, [this](const auto& problem) {
    return objects_.count(problem.first) == 0;
  });
}

void ObjectStore::Upsert(std::string_view text) { Put(Decode(text)); }

void ObjectStore::Delete(std::string_view text) {
  const std::string uid = StringMember(FindMember(text, "metadata"), "uid");
  problems_.erase(uid);
  Erase(uid, /*is_reported=*/true);
}

bool ObjectStore::IsDecoded() const {
  for (const auto& [uid, problem] : problems_) {
    const auto found = objects_.find(uid);
    if (found != objects_.end() && !found->second->problem.empty()) {
      return false;
    }
  }
  return true;
}

std::vector<ObjectChange> ObjectStore::TakeChanges() {
  return std::exchange(changes_, {});
}

void ObjectStore::Put(const std::shared_ptr<const StoredObject>& object) {
  const auto* known = objects_.Find(object->uid);
  if (known != nullptr && *known == object) return;
  objects_.insert_or_assign(object->uid, object);
  changes_.push_back({ObjectChange::Kind::kUpsert, false, object});
}

void ObjectStore::Erase(const std::string& uid, bool is_reported) {
  const auto* known = objects_.Find(uid);
  if (known == nullptr) return;
  changes_.push_back({ObjectChange::Kind::kDelete, is_reported, *known});
  objects_.erase(uid);
}

}  // namespace devmgr::apiserver
