// SPDX-License-Identifier: Apache-2.0
#include "pods/object_book.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "api/meta.h"
#include "api/pod.h"
#include "claim/claim_names.h"
#include "common/status.h"

namespace devmgr::pods {
namespace {

constexpr char kPod[] = "Pod";
constexpr char kClaim[] = "ResourceClaim";
constexpr char kClass[] = "DeviceClass";
constexpr std::chrono::milliseconds kRefreshRetry{1'000};

/// Calls `visit(kind, metadata)` for every object that may need an identity.
template <typename Visit>
void ForEachIdentity(const ObjectSnapshot& snapshot, Visit visit) {
  for (const auto& [name, pod] : snapshot.pods) visit(kPod, pod->metadata);
  for (const auto& [name, pod] : snapshot.malformed_pods) {
    visit(kPod, pod->pod.metadata);
  }
  for (const auto& [name, claim] : snapshot.claims) {
    visit(kClaim, claim->metadata);
  }
  for (const auto& [name, item] : snapshot.device_classes) {
    visit(kClass, item->metadata);
  }
}

/// Objects of an API server bring all that an identity is for.
bool NeedsIdentity(const std::string& kind, const ObjectMeta& metadata) {
  return kind == kClass ? metadata.creation_timestamp.empty()
                        : metadata.uid.empty();
}

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

/// Claims whose objects appeared, changed or went.
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

/// A pod from a file that was rejected for what it was: an API server would
/// never have had it, so that as which it is mended is another pod.
bool IsMended(const ObjectSnapshot& snapshot, const state::State& state,
              const state::IdentityRecord& identity) {
  const state::PodRecord* record = state.FindPod(PodUid{identity.uid});
  if (record == nullptr || record->phase != state::PodPhase::kRejected ||
      record->reason != claim::kInvalidPod) {
    return false;
  }
  const auto found = snapshot.pods.find(identity.name);
  if (found == snapshot.pods.end()) return false;
  Pod pod = *found->second;
  api::DefaultPod(pod);
  const auto& claims = pod.spec.resource_claims;
  return std::all_of(claims.begin(), claims.end(), claim::HasSource) &&
         api::ValidatePod(pod).empty();
}

}  // namespace

std::string DeriveUid(const std::string& source, const std::string& kind,
                      const ObjectName& name, std::uint64_t incarnation) {
  // FNV-1a, 128 bits, shown in the form of a UUID (version 8: our own).
  __extension__ using Wide = unsigned __int128;
  constexpr Wide kPrime = (Wide{1} << 88) + 0x13B;
  Wide hash = (Wide{0x6C62272E07BB0142} << 64) | Wide{0x62B821756295C58D};
  const std::string text =
      fmt::format("{}\n{}\n{}\n{}", source, kind, name.ToString(), incarnation);
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= kPrime;
  }
  const auto high = static_cast<std::uint64_t>(hash >> 64);
  const auto low = static_cast<std::uint64_t>(hash);
  return fmt::format("{:08x}-{:04x}-8{:03x}-{:04x}-{:012x}", high >> 32,
                     (high >> 16) & 0xFFFF, high & 0xFFF,
                     0x8000 | ((low >> 48) & 0x3FFF), low & 0xFFFFFFFFFFFF);
}

ObjectBook::ObjectBook(Executor& executor, ledger::Ledger& ledger,
                       const state::State& state, Options options)
    : executor_(executor),
      ledger_(ledger),
      state_(state),
      options_(std::move(options)),
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

std::shared_ptr<const ObjectSnapshot> ObjectBook::Believed() {
  return trust_->Judge(options_.source->Snapshot());
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
  state::Decision decision;
  decision.kind = state::DecisionKind::kIdentity;
  std::set<state::IdentityKey> present;
  ForEachIdentity(
      snapshot, [&](const std::string& kind, const ObjectMeta& metadata) {
        if (!NeedsIdentity(kind, metadata)) return;
        const ObjectName name = metadata.FullName();
        present.insert({kind, name});
        if (const auto* known = state.FindIdentity(kind, name);
            known != nullptr &&
            (kind != kPod || !IsMended(snapshot, state, *known))) {
          return;
        }
        auto identity = std::make_shared<state::IdentityRecord>();
        identity->kind = kind;
        identity->name = name;
        identity->uid = metadata.uid.empty()
                            ? DeriveUid(options_.source->Describe(), kind, name,
                                        state.seq + 1)
                            : metadata.uid;
        identity->first_seen_ms = options_.now_ms();
        decision.changes.push_back(state::PutIdentity{std::move(identity)});
      });
  if (!snapshot.complete) return decision;
  for (const auto& [key, identity] : state.identities) {
    if (present.contains(key)) continue;
    decision.changes.push_back(state::EraseIdentity{key.first, key.second});
  }
  return decision;
}

bool ObjectBook::IsOurs(const Pod& pod) const {
  return options_.node_name.empty() || pod.spec.node_name == options_.node_name;
}

template <typename T>
std::shared_ptr<const T> ObjectBook::WithIdentity(
    const std::string& kind, const std::shared_ptr<const T>& object) {
  const ObjectMeta& metadata = MetadataOf(*object);
  if (!NeedsIdentity(kind, metadata)) return object;
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
  fill(kPod, result.pods);
  fill(kPod, result.malformed_pods);
  fill(kClaim, result.claims);
  fill(kClass, result.device_classes);
  DropRepeatedUids(kPod, &result.pods, &result.problems);
  DropRepeatedUids(kClaim, &result.claims, &result.problems);
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
