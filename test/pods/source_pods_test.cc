// SPDX-License-Identifier: Apache-2.0
#include "pods/source_pods.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>

namespace devmgr::pods {
namespace {

constexpr unsigned kPods = 8;

ObjectName HeldName(unsigned number) { return {"ns", std::to_string(number)}; }

bool HasPodOf(const ObjectSnapshot& snapshot, const ObjectName& pod) {
  return snapshot.pods.contains(pod) || snapshot.malformed_pods.contains(pod);
}

/// The same as SourcePods, by walks over all pods.
class WalkedPods {
 public:
  explicit WalkedPods(const state::State& state) : state_(state) {}

  std::set<PodUid> Lacking(const ObjectSnapshot& snapshot) const {
    std::set<PodUid> lacking;
    for (const auto& [uid, pod] : state_.pods) {
      if (!HasPodOf(snapshot, pod->name)) lacking.insert(uid);
    }
    return lacking;
  }
  void NoteParts(const ObjectSnapshot& snapshot) {
    Forget(&part_of);
    for (std::size_t i = 0; i < snapshot.parts.size(); ++i) {
      for (const ObjectName& pod : snapshot.parts[i].pods) {
        part_of[pod] = {i, snapshot.parts[i].watch};
      }
    }
  }
  void NoteSeen(const ObjectSnapshot& snapshot) {
    Forget(&seen);
    has_own = false;
    for (const auto& [name, pod] : snapshot.pods) {
      if (snapshot.vouched_pods.contains(name)) continue;
      has_own = true;
      if (snapshot.watch != 0) seen[name] = snapshot.watch;
    }
    for (const auto& [name, pod] : snapshot.malformed_pods) {
      has_own = has_own || !snapshot.vouched_pods.contains(name);
      if (snapshot.watch != 0) seen[name] = snapshot.watch;
    }
  }

  std::map<ObjectName, SourcePods::Part> part_of;
  std::map<ObjectName, std::uint64_t> seen;
  bool has_own = false;

 private:
  template <typename Map>
  void Forget(Map* map) const {
    std::erase_if(*map, [this](const auto& entry) {
      return state_.PodsNamed(entry.first).empty();
    });
  }
  const state::State& state_;
};

class RandomSource {
 public:
  RandomSource(unsigned seed, state::State* state)
      : random_(seed), state_(*state) {
    snapshot.parts.resize(2);
  }

  void Change() {
    const ObjectName name = HeldName(random_() % kPods);
    const bool there = random_() % 2 == 0;
    switch (random_() % 8) {
      case 0:
        snapshot.watch = random_() % 3;
        break;
      case 1:
        snapshot.parts[random_() % snapshot.parts.size()].watch = random_() % 3;
        break;
      case 2:
        Set(there, name, &snapshot.malformed_pods);
        break;
      case 3:
        SetName(there, name, &snapshot.vouched_pods);
        break;
      case 4:
        SetName(there, name,
                &snapshot.parts[random_() % snapshot.parts.size()].pods);
        break;
      case 5:
        ChangeLedger(name, there);
        break;
      case 6:
        // The source is joined with other ones, or alone.
        snapshot.parts.resize(2 - (random_() % 10 == 0 ? 1 : 0));
        break;
      default:
        Set(there, name, &snapshot.pods);
    }
  }

  ObjectSnapshot snapshot;

 private:
  template <typename T>
  static void Set(bool there, const ObjectName& name, ObjectMap<T>* to) {
    if (there) {
      to->insert_or_assign(name, std::make_shared<const T>());
    } else {
      to->erase(name);
    }
  }
  static void SetName(bool there, const ObjectName& name,
                      PersistentSet<ObjectName>* to) {
    if (there) {
      to->insert(name);
    } else {
      to->erase(name);
    }
  }
  void ChangeLedger(const ObjectName& name, bool there) {
    const PodUid uid{name.name + "-" + std::to_string(random_() % 2)};
    if (!there) {
      state_.Erase(uid);
      return;
    }
    auto pod = std::make_shared<state::PodRecord>();
    pod->uid = uid;
    pod->name = name;
    state_.Put(std::move(pod));
  }

  std::mt19937 random_;
  state::State& state_;
};

TEST(SourcePodsTest, ARandomHistoryComesToWhatWalksFind) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    state::State state;
    RandomSource source(seed, &state);
    SourcePods pods(state);
    WalkedPods model(state);
    std::mt19937 random(seed);
    for (int step = 0; step < 200; ++step) {
      SCOPED_TRACE(step);
      for (unsigned i = 0; i <= seed % 4; ++i) source.Change();
      pods.Follow(source.snapshot);
      ASSERT_EQ(pods.lacking(), model.Lacking(source.snapshot));
      if (random() % 3 != 0) {
        pods.NoteParts(source.snapshot);
        model.NoteParts(source.snapshot);
      }
      if (random() % 3 != 0) {
        pods.NoteSeen(source.snapshot);
        model.NoteSeen(source.snapshot);
        ASSERT_EQ(pods.has_own(), model.has_own);
      }
      for (unsigned i = 0; i < kPods; ++i) {
        const ObjectName name = HeldName(i);
        const auto seen = model.seen.find(name);
        ASSERT_EQ(pods.SeenIn(name),
                  seen == model.seen.end() ? 0 : seen->second);
        const auto part = model.part_of.find(name);
        ASSERT_EQ(pods.PartOf(name).has_value(), part != model.part_of.end());
        if (part != model.part_of.end()) {
          ASSERT_EQ(*pods.PartOf(name), part->second);
        }
      }
    }
  }
}

}  // namespace
}  // namespace devmgr::pods
