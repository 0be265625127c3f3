// SPDX-License-Identifier: Apache-2.0
#include "pods/object_book.h"

#include <fmt/core.h>

#include <algorithm>

#include "api/meta.h"
#include "claim/object_uid.h"
#include "common/status.h"

namespace devmgr::pods {
namespace {

constexpr std::chrono::milliseconds kRefreshRetry{1'000};

ObjectMeta& MetadataOf(MalformedPod& pod) { return pod.pod.metadata; }
template <typename T>
ObjectMeta& MetadataOf(T& object) {
  return object.metadata;
}
const ObjectMeta& MetadataOf(const MalformedPod& pod) {
  return pod.pod.metadata;
}
template <typename T>
const ObjectMeta& MetadataOf(const T& object) {
  return object.metadata;
}

/// Claims whose objects appeared, changed or went, or that cannot be read, or
/// for another reason.
std::vector<WaitingFor> ChangedClaims(const ObjectSnapshot& before,
                                      const ObjectSnapshot& after) {
  std::vector<WaitingFor> changed;
  const auto add = [&](const ObjectName& name) {
    changed.push_back({WaitingFor::Kind::kClaim, name.ToString()});
  };
  for (const auto& [name, claim] : after.claims) {
    const auto old = before.claims.find(name);
    if (old == before.claims.end() || old->second != claim) add(name);
  }
  for (const auto& [name, claim] : before.claims) {
    if (!after.claims.contains(name)) add(name);
  }
  for (const auto& [name, unread] : after.unread_claims) {
    const auto old = before.unread_claims.find(name);
    if (old == before.unread_claims.end() || old->second != unread) add(name);
  }
  return changed;
}

/// A UID belongs to one object: of several that claim it, the first by name
/// counts, the others are reported.
template <typename T>
void DropRepeatedUids(const std::string& kind, ObjectMap<T>* objects,
                      std::vector<ManifestProblem>* problems) {
  std::map<std::string, ObjectName> owners;
  for (auto it = objects->begin(); it != objects->end();) {
    const std::string& uid = it->second->metadata.uid;
    const auto [owner, is_first] = owners.emplace(uid, it->first);
    if (is_first) {
      ++it;
      continue;
    }
    ManifestProblem problem;
    problem.field = "metadata.uid";
    problem.message =
        fmt::format("{} '{}' is left out: its UID '{}' belongs to '{}' already",
                    kind, it->first.ToString(), uid, owner->second.ToString());
    problems->push_back(std::move(problem));
    it = objects->erase(it);
  }
}

}  // namespace

ObjectBook::ObjectBook(Executor& executor, ledger::Ledger& ledger,
                       const state::State& state, Options options)
    : executor_(executor),
      ledger_(ledger),
      state_(state),
      options_(std::move(options)),
      gate_(executor_),
      trust_(options_.source == nullptr
                 ? nullptr
                 : std::make_unique<SourceTrust>(SourceTrust::Parts{
                       executor_, ledger_, state_, *options_.events,
                       *options_.source, options_.node_name, options_.boot_id,
                       options_.now_ms})) {}

std::shared_ptr<const ObjectSnapshot> ObjectBook::Current() const {
  MutexLock lock(mutex_);
  return current_;
}

void ObjectBook::Refresh() {
  DEVMGR_ASSERT_ON(executor_);
  if (options_.source == nullptr) return;
  if (deciding_) {
    again_ = true;
    return;
  }
  const auto snapshot = Believed();
  if (DecideIdentities(state_, *snapshot).changes.empty()) {
    Publish(*snapshot);
    return;
  }
  deciding_ = true;
  ledger_.Submit(
      [this, snapshot](const state::State& state) {
        return DecideIdentities(state, *snapshot);
      },
      executor_,
      [this, snapshot](const absl::Status& status) {
        deciding_ = false;
        if (status.ok()) {
          Publish(*snapshot);
          if (std::exchange(again_, false)) Refresh();
        } else {
          again_ = false;
          executor_.PostAfter(kRefreshRetry, [this] { Refresh(); });
        }
      });
}

void ObjectBook::ReadAnew(const std::vector<ObjectName>& claims,
                          std::function<void(const absl::Status&)> done) {
  DEVMGR_ASSERT_ON(executor_);
  struct Reading {
    std::size_t left = 0;
    absl::Status failure;
  };
  const auto reading = std::make_shared<Reading>();
  for (const ObjectName& name : claims) {
    const auto read = [this, reading, name, done](const absl::Status& status) {
      // That there is none is what is to be seen.
      if (!status.ok() && !absl::IsNotFound(status)) {
        reading->failure.Update(
            WithContext(status, "fetch ResourceClaim {}", name.name));
      }
      if (--reading->left > 0) return;
      // Whether or not the source has said so by now.
      if (options_.source->Snapshot() != taken_) Refresh();
      done(reading->failure);
    };
    if (options_.source != nullptr &&
        options_.source->Refresh(ObjectKind::kResourceClaim, name,
                                 gate_.Pass<absl::Status>(read))) {
      ++reading->left;
    }
  }
  if (reading->left == 0) done(absl::OkStatus());
}

std::shared_ptr<const ObjectSnapshot> ObjectBook::Believed() {
  taken_ = options_.source->Snapshot();
  return trust_->Judge(taken_);
}

void ObjectBook::OnCommitted(const ledger::Changes& changes) {
  DEVMGR_ASSERT_ON(executor_);
  const bool is_gone =
      std::any_of(changes.pods.begin(), changes.pods.end(),
                  [](const auto& pod) { return pod.now == nullptr; });
  if (is_gone && trust_ != nullptr && trust_->in_doubt()) {
    executor_.Post([this] { Refresh(); });
  }
  if (changes.decision.kind == state::DecisionKind::kIdentity ||
      changes.decision.kind == state::DecisionKind::kReject) {
    OnIdentities();
  }
}

void ObjectBook::Confirm(const std::string& reason,
                         std::function<void(const absl::Status&)> done) {
  DEVMGR_ASSERT_ON(executor_);
  if (trust_ == nullptr) {
    return done(FailedPreconditionError("this node has no source of objects"));
  }
  trust_->Confirm(reason, [this, done](const absl::Status& status) {
    if (status.ok()) Refresh();
    done(status);
  });
}

void ObjectBook::OnIdentities() {
  // Who is deciding looks at what the ledger holds by then.
  if (options_.source == nullptr || deciding_) return;
  const auto snapshot = Believed();
  if (!DecideIdentities(state_, *snapshot).changes.empty()) Refresh();
}

state::Decision ObjectBook::DecideIdentities(
    const state::State& state, const ObjectSnapshot& snapshot) const {
  return claim::DecideIdentities(state, snapshot, options_.source->Describe(),
                                 options_.now_ms());
}

bool ObjectBook::IsOurs(const Pod& pod) const {
  return options_.node_name.empty() || pod.spec.node_name == options_.node_name;
}

template <typename T>
std::shared_ptr<const T> ObjectBook::WithIdentity(
    const std::string& kind, const std::shared_ptr<const T>& object) {
  const ObjectMeta& metadata = MetadataOf(*object);
  if (!claim::NeedsIdentity(kind, metadata)) return object;
  const auto* identity = state_.FindIdentity(kind, metadata.FullName());
  if (identity == nullptr) return object;
  const auto known = identified_.find(object.get());
  if (known != identified_.end()) {
    auto same = std::static_pointer_cast<const T>(known->second.second);
    if (MetadataOf(*same).uid == identity->uid) return same;
  }
  auto copy = std::make_shared<T>(*object);
  ObjectMeta& filled = MetadataOf(*copy);
  filled.uid = identity->uid;
  if (filled.creation_timestamp.empty()) {
    filled.creation_timestamp = api::TimestampOf(identity->first_seen_ms);
  }
  return copy;
}

ObjectSnapshot ObjectBook::Identified(const ObjectSnapshot& snapshot) {
  ObjectSnapshot result = snapshot;
  decltype(identified_) identified;
  const auto fill = [&](const std::string& kind, auto& objects) {
    for (auto& [name, object] : objects) {
      const auto original = object;
      object = WithIdentity(kind, original);
      if (object != original) {
        identified[original.get()] = {original, object};
      }
    }
  };
  std::erase_if(result.pods,
                [this](const auto& entry) { return !IsOurs(*entry.second); });
  std::erase_if(result.malformed_pods, [this](const auto& entry) {
    return !IsOurs(entry.second->pod);
  });
  fill(claim::kPodKind, result.pods);
  fill(claim::kPodKind, result.malformed_pods);
  fill(claim::kClaimKind, result.claims);
  fill(claim::kClassKind, result.device_classes);
  DropRepeatedUids(claim::kPodKind, &result.pods, &result.problems);
  DropRepeatedUids(claim::kClaimKind, &result.claims, &result.problems);
  identified_ = std::move(identified);
  return result;
}

void ObjectBook::Publish(const ObjectSnapshot& snapshot) {
  auto next = std::make_shared<const ObjectSnapshot>(Identified(snapshot));
  std::shared_ptr<const ObjectSnapshot> before;
  {
    MutexLock lock(mutex_);
    before = std::exchange(current_, next);
  }
  trust_->OnPublished(snapshot);
  options_.on_objects(ChangedClaims(*before, *next));
}

}  // namespace devmgr::pods
