// SPDX-License-Identifier: Apache-2.0
#include "pods/object_book.h"

#include <algorithm>

#include "common/status.h"
#include "pods/object_changes.h"

namespace devmgr::pods {
namespace {

constexpr std::chrono::milliseconds kRefreshRetry{1'000};

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
                       options_.now_ms})),
      identified_(options_.node_name) {}

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
  if (!LacksIdentities(snapshot)) {
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
  if (!changes.local_claims.empty()) {
    Show();
    // Not amid what the other rooms hear of the batch.
    executor_.Post([this] { Tell(); });
  }
  const bool is_gone =
      std::any_of(changes.pods.begin(), changes.pods.end(),
                  [](const auto& pod) { return pod.now == nullptr; });
  if (is_gone && trust_ != nullptr && trust_->in_doubt()) {
    executor_.Post([this] { Refresh(); });
  }
  const bool is_of_files =
      std::any_of(changes.pods.begin(), changes.pods.end(), [&](const auto& p) {
        return p.now != nullptr &&
               state_.FindIdentity(claim::kPodKind, p.now->name) != nullptr;
      });
  if (changes.decision.kind == state::DecisionKind::kIdentity ||
      (changes.decision.kind == state::DecisionKind::kReject && is_of_files)) {
    settled_ = nullptr;
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
  if (LacksIdentities(snapshot)) Refresh();
}

bool ObjectBook::LacksIdentities(
    const std::shared_ptr<const ObjectSnapshot>& snapshot) {
  if (settled_ == nullptr ||
      claim::MayNeedIdentities(*settled_, settled_identities_, *snapshot,
                               state_)) {
    settled_ = nullptr;
    if (!DecideIdentities(state_, *snapshot).changes.empty()) return true;
  }
  settled_ = snapshot;
  settled_identities_ = state_.identities;
  return false;
}

state::Decision ObjectBook::DecideIdentities(
    const state::State& state, const ObjectSnapshot& snapshot) const {
  return claim::DecideIdentities(state, snapshot, options_.source->Describe(),
                                 options_.now_ms());
}

void ObjectBook::Publish(const ObjectSnapshot& snapshot) {
  of_source_ = identified_.Take(snapshot, state_);
  Show();
  trust_->OnPublished(snapshot);
  Tell();
}

void ObjectBook::Show() {
  ObjectSnapshot shown = of_source_;
  shows_local_ = shows_local_ || Allocates() || !state_.local_claims.empty();
  if (shows_local_) local_.Show(state_, &shown);
  auto next = std::make_shared<const ObjectSnapshot>(std::move(shown));
  MutexLock lock(mutex_);
  current_ = std::move(next);
}

void ObjectBook::Tell() {
  const auto now = Current();
  const auto before = std::exchange(told_, now);
  std::vector<WaitingFor> changed = ChangedClaims(*before, *now);
  if (Allocates()) {
    const std::vector<WaitingFor> devices = ChangedDevices(
        *before, *now, options_.node_name, options_.feature_gates);
    changed.insert(changed.end(), devices.begin(), devices.end());
  }
  options_.on_objects(std::move(changed));
}

}  // namespace devmgr::pods
