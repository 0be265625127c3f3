// SPDX-License-Identifier: Apache-2.0
#include "source/joined_snapshot.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <utility>

namespace devmgr::source {
namespace {

/// A source that changes at random. Few names and UIDs, so that they meet.
class RandomSource {
 public:
  explicit RandomSource(unsigned seed) : random_(seed) {}

  void Change() {
    const ObjectName name{"ns", std::to_string(random_() % 8)};
    const bool there = random_() % 3 != 0;
    switch (random_() % 6) {
      case 0:
        Set(there, name, &snapshot.malformed_pods);
        break;
      case 1:
        Set(there, name, &snapshot.claims);
        break;
      case 2:
        snapshot.unread_claims.erase(name);
        if (there) snapshot.unread_claims.insert_or_assign(name, {{}, "away"});
        break;
      case 3:
        snapshot.vouched_pods.erase(name);
        if (there) snapshot.vouched_pods.insert(name);
        break;
      case 4:
        snapshot.gone_pods.erase(PodUid{Uid()});
        if (there) snapshot.gone_pods.insert(PodUid{Uid()});
        break;
      default:
        Set(there, name, &snapshot.pods);
    }
  }

  ObjectSnapshot snapshot;

 private:
  std::string Uid() {
    const unsigned number = random_() % 8;
    return number == 0 ? "" : "u-" + std::to_string(number);
  }
  template <typename T>
  void Set(bool there, const ObjectName& name, ObjectMap<T>* objects) {
    if (!there) {
      objects->erase(name);
      return;
    }
    T object;
    if constexpr (std::is_same_v<T, MalformedPod>) {
      object.pod.metadata.uid = Uid();
    } else {
      object.metadata.uid = Uid();
    }
    objects->insert_or_assign(name,
                              std::make_shared<const T>(std::move(object)));
  }

  std::mt19937 random_;
};

std::string Text(const ObjectSnapshot& snapshot) {
  std::string text;
  const auto add = [&](const auto& objects) {
    for (const auto& [name, object] : objects) {
      text += name.ToString() + "=" + UidOfObject(*object) + " ";
    }
    text += "| ";
  };
  add(snapshot.pods);
  add(snapshot.malformed_pods);
  add(snapshot.claims);
  for (const auto& [name, unread] : snapshot.unread_claims) {
    text += name.ToString() + " ";
  }
  text += "| ";
  for (const ObjectName& name : snapshot.vouched_pods) {
    text += name.ToString() + " ";
  }
  text += "| ";
  for (const PodUid& uid : snapshot.gone_pods) text += uid.value + " ";
  for (const ManifestProblem& problem : snapshot.problems) {
    text += "\n" + problem.ToString();
  }
  return text;
}

/// Following two sources step by step comes to the same as joining at once.
TEST(SnapshotJoinTest, ARandomHistoryComesToWhatIsThere) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    RandomSource first(seed);
    RandomSource second(1000 + seed);
    SnapshotJoin followed;
    for (int step = 0; step < 200; ++step) {
      for (unsigned i = 0; i <= seed % 3; ++i) {
        (step % 2 == 0 ? first : second).Change();
      }
      const ObjectSnapshot all =
          followed.Join(first.snapshot, second.snapshot, "one", "two has it");
      SnapshotJoin fresh;
      ASSERT_EQ(Text(all), Text(fresh.Join(first.snapshot, second.snapshot,
                                           "one", "two has it")))
          << "after step " << step;
    }
  }
}

}  // namespace
}  // namespace devmgr::source
