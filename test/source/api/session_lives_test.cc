// SPDX-License-Identifier: Apache-2.0
//
// Random histories of a server against what a session makes of them: pods come,
// change, go and come again under the same name, the server forgets its
// history and restarts, connections break at any byte, the session is begun
// anew. No pod is reported gone that is not, and in the end what is known is
// what the server has.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/executor.h"
#include "source/api/api_session.h"
#include "source/api/store_transport.h"
#include "support/random_lives.h"

namespace devmgr::apiserver {
namespace {

using apistore::Json;

/// A node's pods at a server, and the session that follows them.
class Life {
 public:
  explicit Life(Luck& luck) : luck_(luck) {
    NewServer(1);
    Begin();
  }
  ~Life() { session_.reset(); }

  void Step() {
    const RandomStep steps[] = {
        {"create", 12, [this] { Create(); }},
        {"change", 8, [this] { Change(); }},
        {"delete", 8, [this] { Delete(); }},
        {"replace", 4, [this] { Replace(); }},
        {"serve", 30, [this] { Serve(); }},
        {"deliver", 60, [this] { Deliver(); }},
        {"refuse", 3, [this] { Refuse(); }},
        {"cut", 4, [this] { Cut(); }},
        {"end", 2, [this] { EndWatch(); }},
        {"bookmarks", 3, [this] { store_->SendBookmarks(); }},
        {"compact", 2, [this] { store_->Compact(); }},
        {"restart server", 1, [this] { RestartServer(); }},
        {"restart", 1, [this] { Restart(); }},
        {"hurry", 1, [this] { session_->Hurry(); }},
        {"wait", 10,
         [this] {
           executor_.Advance(std::chrono::milliseconds(1 << luck_.Below(16)));
         }},
    };
    Draw(steps, luck_).run();
    executor_.RunPending();
    Check();
  }

  /// Nothing breaks any more: what is known has to become what there is.
  void Settle() {
    for (int i = 0; i < 400 && !IsSettled(); ++i) {
      ServeAll();
      executor_.Advance(std::chrono::seconds(5));
      executor_.RunPending();
    }
    ServeAll();
    executor_.RunPending();
    Check();
    EXPECT_TRUE(snapshot_->complete);
    EXPECT_EQ(Known(), Living());
    EXPECT_EQ(believed_, LivingUids());
  }

 private:
  using ByName = std::map<std::string, std::pair<std::string, std::string>>;

  void NewServer(std::uint64_t revision) {
    apistore::Store::Options options;
    options.first_revision = revision;
    options.history_changes = 20;
    options.watch.events = 8;
    options.random = [this] {
      return (std::uint64_t{luck_()} << 32) | luck_();
    };
    store_ = std::make_unique<apistore::Store>(apistore::BuiltinTypes(),
                                               std::move(options));
    transport_ = std::make_unique<StoreTransport>(*store_);
  }
  void Begin() {
    Kubeconfig config;
    config.server = "http://api.test";
    credentials_ = std::make_unique<Credentials>(
        config, Credentials::Seams{.read_file = {},
                                   .check_pair = {},
                                   .wall_clock = [] { return WallTime(); },
                                   .warn = [](const std::string&) {}});
    ApiSession::Options options;
    options.node_name = "n1";
    options.memory = memory_;
    options.stream_lists = luck_.Chance(30);
    options.before = luck_.Chance(50) ? snapshot_ : nullptr;
    session_.emplace(
        options,
        ApiSession::Parts{
            .executor = executor_,
            .transport = *transport_,
            .credentials = *credentials_,
            .random = [this] { return luck_.Below(100) / 100.0; },
            .publish =
                [this](auto snapshot) {
                  snapshot_ = std::move(snapshot);
                  Judge();
                },
            .remember =
                [this](const SourceMemory& memory) { memory_ = memory; },
            .activity = activity_,
            .on_state = [](const std::string&) {},
            .warn = [](const std::string&) {}});
  }
  void Restart() {
    session_.reset();
    Begin();
  }
  /// With all objects, and without its history and its connections.
  void RestartServer() {
    session_.reset();
    std::unique_ptr<apistore::Store> old = std::move(store_);
    NewServer(old->revision() + 1);
    for (const auto& [name, pod] : pods_) store_->Load(pod, 0);
    Begin();
  }

  std::string Name() { return std::string(1, char('a' + luck_.Below(12))); }
  apistore::Target Target(const std::string& name) const {
    return {store_->FindType("", "pods"), 0, "ns", name};
  }
  void Create() {
    const std::string name = Name();
    Json pod = {{"metadata", {{"name", name}, {"namespace", "ns"}}},
                {"spec",
                 {{"nodeName", luck_.Chance(85) ? "n1" : "n2"},
                  {"containers", Json::array({{{"name", "c"}}})}}}};
    if (luck_.Chance(10)) {
      pod["metadata"]["annotations"]["long"] =
          std::string(luck_.Below(20'000), 'x');
    }
    const apistore::Answer answer = store_->Create(Target(""), pod, {});
    if (answer.code == 201) pods_[name] = answer.body;
  }
  void Change() {
    const std::string name = Name();
    const auto found = pods_.find(name);
    if (found == pods_.end()) return;
    Json pod = found->second;
    // Whatever it is by now.
    pod["metadata"].erase("resourceVersion");
    pod["metadata"]["labels"]["n"] = std::to_string(luck_.Below(1000));
    const apistore::Answer answer = store_->Put(Target(name), pod, {});
    ASSERT_EQ(answer.code, 200) << answer.body;
    found->second = answer.body;
  }
  void Delete() { Remove(Name()); }
  void Replace() {
    const std::string name = Name();
    Remove(name);
    Create();
  }
  void Remove(const std::string& name) {
    const auto found = pods_.find(name);
    if (found == pods_.end()) return;
    apistore::DeleteOptions options;
    options.grace_period_seconds = 0;
    ASSERT_TRUE(store_->Delete(Target(name), options).ok());
    gone_.insert(found->second["metadata"]["uid"].get<std::string>());
    pods_.erase(found);
  }

  /// One of the open requests; 0 when there is none.
  Transport::TransferId Any() {
    const auto open = transport_->Open();
    return open.empty() ? 0 : luck_.Pick(open);
  }
  void Serve() {
    const auto id = Any();
    if (id != 0 && !transport_->IsAnswered(id)) transport_->Answer(id);
  }
  void Deliver() {
    if (const auto id = Any()) transport_->Deliver(id, 1 + luck_.Below(3000));
  }
  void Refuse() {
    const auto id = Any();
    if (id == 0 || transport_->IsAnswered(id)) return;
    const apistore::ApiError errors[] = {
        apistore::Expired("too old"),     apistore::TooManyRequests(1),
        apistore::Unavailable("away", 0), apistore::Forbidden("may not"),
        apistore::Unauthorized(),         apistore::VersionTooLarge("9", "1")};
    transport_->Refuse(id, luck_.Pick(errors));
  }
  void Cut() {
    if (const auto id = Any()) transport_->Cut(id);
  }
  void EndWatch() {
    const auto id = Any();
    if (id != 0 && transport_->IsAnswered(id) && !transport_->Deliver(id, 1)) {
      transport_->EndInOrder(id);
    }
  }
  void ServeAll() {
    for (bool moved = true; moved;) {
      moved = false;
      for (const auto id : transport_->Open()) {
        const auto open = transport_->Open();
        if (std::find(open.begin(), open.end(), id) == open.end()) continue;
        if (!transport_->IsAnswered(id)) {
          transport_->Answer(id);
          moved = true;
        } else {
          moved |= transport_->Deliver(id, 1'000'000);
        }
        executor_.RunPending();
      }
    }
  }

  /// What a manager would take for gone.
  void Judge() {
    std::set<std::string> now;
    for (const auto& [name, pod] : snapshot_->pods) {
      now.insert(pod->metadata.uid);
    }
    for (const PodUid& uid : snapshot_->gone_pods) {
      EXPECT_EQ(gone_.count(uid.value), 1u) << uid.value << " was deleted?";
      EXPECT_EQ(now.count(uid.value), 0u);
      believed_.erase(uid.value);
    }
    for (const std::string& uid : now) believed_.insert(uid);
    if (!snapshot_->complete) return;
    std::erase_if(believed_, [&](const std::string& uid) {
      if (now.count(uid) > 0) return false;
      EXPECT_EQ(gone_.count(uid), 1u) << uid << " is missing, and lives";
      return true;
    });
  }
  void Check() const {
    // Its own pods only.
    for (const auto& [name, pod] : snapshot_->pods) {
      ASSERT_EQ(pod->spec.node_name, "n1");
    }
  }

  ByName Living() const {
    ByName living;
    for (const auto& [name, pod] : pods_) {
      if (pod["spec"]["nodeName"] != "n1") continue;
      const Json& meta = pod["metadata"];
      const Json labels = meta.value("labels", Json::object());
      living[name] = {meta["uid"].get<std::string>(), labels.value("n", "")};
    }
    return living;
  }
  std::set<std::string> LivingUids() const {
    std::set<std::string> uids;
    for (const auto& [name, pod] : Living()) uids.insert(pod.first);
    return uids;
  }
  ByName Known() const {
    ByName known;
    for (const auto& [name, pod] : snapshot_->pods) {
      const auto label = pod->metadata.labels.find("n");
      known[name.name] = {pod->metadata.uid, label == pod->metadata.labels.end()
                                                 ? ""
                                                 : label->second};
    }
    return known;
  }
  bool IsSettled() const {
    return snapshot_->complete && snapshot_->vouched && Known() == Living();
  }

  Luck& luck_;
  ManualExecutor executor_;
  std::unique_ptr<apistore::Store> store_;
  std::unique_ptr<StoreTransport> transport_;
  std::unique_ptr<Credentials> credentials_;
  Activity activity_;
  SourceMemory memory_;
  std::optional<ApiSession> session_;
  std::shared_ptr<const ObjectSnapshot> snapshot_ =
      std::make_shared<const ObjectSnapshot>();

  std::map<std::string, Json> pods_;  ///< At the server, by name.
  std::set<std::string> gone_;        ///< UIDs of pods that were deleted.
  /// UIDs that the node holds: those that it saw and that are not gone by what
  /// was published. Stays over restarts, as the ledger does.
  std::set<std::string> believed_;
};

TEST(SessionLives, ConvergeAndReportNoPodGoneThatLives) {
  LiveEach({.seed = 20261126, .lives = 300}, [](Luck& luck) {
    Life life(luck);
    const int steps = 50 + luck.Below(400);
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      life.Step();
    }
    life.Settle();
  });
}

}  // namespace
}  // namespace devmgr::apiserver
