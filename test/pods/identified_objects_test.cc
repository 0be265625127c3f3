// SPDX-License-Identifier: Apache-2.0
#include "pods/identified_objects.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <utility>

namespace devmgr::pods {
namespace {

constexpr char kNode[] = "node";

ObjectName IdentifiedName(unsigned number) {
  return {"ns", std::to_string(number)};
}

/// A source and a ledger that change at random.
class RandomObjects {
 public:
  explicit RandomObjects(unsigned seed) : random_(seed) {}

  void Change() {
    const ObjectName name = IdentifiedName(random_() % 12);
    switch (random_() % 7) {
      case 0:
        snapshot.pods.erase(name);
        break;
      case 1:
        snapshot.claims.erase(name);
        break;
      case 2:
        snapshot.malformed_pods.erase(name);
        break;
      case 3:
        Identify(name);
        break;
      case 4: {
        MalformedPod malformed;
        malformed.pod = NewPod(name);
        snapshot.malformed_pods.insert_or_assign(
            name, std::make_shared<const MalformedPod>(std::move(malformed)));
        break;
      }
      case 5: {
        ResourceClaim claim;
        Fill(name, &claim.metadata);
        snapshot.claims.insert_or_assign(
            name, std::make_shared<const ResourceClaim>(std::move(claim)));
        break;
      }
      default:
        snapshot.pods.insert_or_assign(
            name, std::make_shared<const Pod>(NewPod(name)));
    }
  }

  ObjectSnapshot snapshot;
  state::State state;

 private:
  void Fill(const ObjectName& name, ObjectMeta* meta) {
    meta->ns = name.ns;
    meta->name = name.name;
    // Few, so that they repeat; or none.
    const unsigned uid = random_() % 8;
    if (uid > 0) meta->uid = "u-" + std::to_string(uid);
  }
  Pod NewPod(const ObjectName& name) {
    Pod pod;
    Fill(name, &pod.metadata);
    pod.spec.node_name = random_() % 4 == 0 ? "other" : kNode;
    return pod;
  }
  void Identify(const ObjectName& name) {
    const char* kind = random_() % 2 == 0 ? "Pod" : "ResourceClaim";
    if (random_() % 3 == 0) {
      state.Erase(state::IdentityKey{kind, name});
      return;
    }
    auto identity = std::make_shared<state::IdentityRecord>();
    identity->kind = kind;
    identity->name = name;
    identity->uid = "i-" + std::to_string(random_() % 100);
    state.Put(std::move(identity));
  }

  std::mt19937 random_;
};

template <typename T>
std::string Text(const ObjectMap<T>& objects) {
  std::string text;
  for (const auto& [name, object] : objects) {
    if constexpr (std::is_same_v<T, MalformedPod>) {
      text += name.ToString() + "=" + object->pod.metadata.uid + " ";
    } else {
      text += name.ToString() + "=" + object->metadata.uid + " ";
    }
  }
  return text;
}

std::string Text(const ObjectSnapshot& snapshot) {
  std::string text = Text(snapshot.pods) + "| " +
                     Text(snapshot.malformed_pods) + "| " +
                     Text(snapshot.claims);
  for (const ManifestProblem& problem : snapshot.problems) {
    text += "\n" + problem.ToString();
  }
  return text;
}

/// Following a source step by step comes to the same as taking it in at once.
TEST(IdentifiedObjectsTest, ARandomHistoryComesToWhatIsThere) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    RandomObjects objects(seed);
    IdentifiedObjects followed(kNode);
    for (int step = 0; step < 200; ++step) {
      for (unsigned i = 0; i <= seed % 3; ++i) objects.Change();
      const ObjectSnapshot result =
          followed.Take(objects.snapshot, objects.state);
      IdentifiedObjects fresh(kNode);
      ASSERT_EQ(Text(result), Text(fresh.Take(objects.snapshot, objects.state)))
          << "after step " << step;
      for (const auto& [name, pod] : result.pods) {
        ASSERT_EQ(pod->spec.node_name, kNode);
      }
    }
  }
}

TEST(IdentifiedObjectsTest, AnObjectThatDidNotChangeStaysTheSamePointer) {
  ObjectSnapshot snapshot;
  state::State state;
  auto pod = std::make_shared<Pod>();
  pod->metadata.ns = "ns";
  pod->metadata.name = "p";
  snapshot.pods.insert_or_assign(pod->metadata.FullName(), pod);
  auto identity = std::make_shared<state::IdentityRecord>();
  identity->kind = "Pod";
  identity->name = pod->metadata.FullName();
  identity->uid = "u";
  state.Put(std::move(identity));
  IdentifiedObjects followed("");
  const auto first =
      followed.Take(snapshot, state).pods.at(pod->metadata.FullName());
  EXPECT_EQ(first->metadata.uid, "u");
  snapshot.pods.insert_or_assign({"ns", "q"}, std::make_shared<Pod>(*pod));
  EXPECT_EQ(followed.Take(snapshot, state).pods.at(pod->metadata.FullName()),
            first);
}

}  // namespace
}  // namespace devmgr::pods
