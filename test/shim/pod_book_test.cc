// SPDX-License-Identifier: Apache-2.0
#include "shim/pod_book.h"

#include <gtest/gtest.h>

namespace devmgr::shim {
namespace {

cri::SandboxIdentity Identity(const std::string& uid,
                              std::uint32_t attempt = 0) {
  return {{uid}, {"ns", uid}, attempt};
}
cri::Sandbox Listed(const std::string& id, const std::string& uid) {
  return {id, Identity(uid), true};
}
cri::Container ListedIn(const std::string& sandbox, const std::string& id) {
  cri::Container container;
  container.id = id;
  container.sandbox_id = sandbox;
  container.name = "c";
  return container;
}

TEST(PodBook, TellsWhenTheLastSandboxOfAPodIsGone) {
  PodBook book;
  book.AddSandbox("s-0", Identity("u", 0));
  book.AddSandbox("s-1", Identity("u", 1));
  // The old attempt says nothing of the newer one.
  EXPECT_EQ(book.RemoveSandbox("s-0").uid.value, "");
  EXPECT_EQ(book.RemoveSandbox("s-0").uid.value, "");
  EXPECT_EQ(book.RemoveSandbox("s-1").uid.value, "u");
}

TEST(PodBook, ContainersGoWithTheirSandbox) {
  PodBook book;
  book.AddSandbox("s", Identity("u"));
  book.AddContainer("c-1", {"s", "main"});
  book.AddContainer("c-2", {"s", "side"});
  book.RemoveContainer("c-1");
  EXPECT_EQ(book.FindContainer("c-1"), nullptr);
  ASSERT_NE(book.FindContainer("c-2"), nullptr);
  EXPECT_EQ(book.FindContainer("c-2")->name, "side");
  book.RemoveSandbox("s");
  EXPECT_EQ(book.containers(), 0U);
}

TEST(PodBook, ListsAreTheTruthOfWhenTheyWereAskedFor) {
  PodBook book;
  book.AddSandbox("gone", Identity("a"));
  book.AddSandbox("stays", Identity("b"));
  book.BeginLook();
  book.AddSandbox("new", Identity("c"));
  book.AddContainer("new-1", {"new", "c"});
  book.RemoveSandbox("removed");
  book.Reconcile({Listed("stays", "b"), Listed("removed", "d")},
                 {ListedIn("stays", "stays-1")});
  EXPECT_EQ(book.FindSandbox("gone"), nullptr);
  EXPECT_EQ(book.FindSandbox("removed"), nullptr);
  EXPECT_NE(book.FindSandbox("stays"), nullptr);
  EXPECT_NE(book.FindSandbox("new"), nullptr);
  EXPECT_NE(book.FindContainer("new-1"), nullptr);
  EXPECT_NE(book.FindContainer("stays-1"), nullptr);
  EXPECT_EQ(book.Pods(), (std::set<PodUid>{{"b"}, {"c"}}));
}

TEST(PodBook, CountsSandboxesOfNoPod) {
  PodBook book;
  book.AddSandbox("made by hand", Identity(""));
  book.AddSandbox("s", Identity("u"));
  EXPECT_EQ(book.foreign_sandboxes(), 1U);
  EXPECT_EQ(book.Pods(), (std::set<PodUid>{{"u"}}));
}

TEST(PodBook, KnowsWhichContainersHaveExited) {
  PodBook book;
  book.BeginLook();
  cri::Container gone = ListedIn("s", "c1");
  gone.state = cri::ContainerState::kExited;
  book.Reconcile({Listed("s", "u")}, {gone, ListedIn("s", "c2")});
  ASSERT_NE(book.FindContainer("c1"), nullptr);
  ASSERT_NE(book.FindContainer("c2"), nullptr);
  EXPECT_TRUE(book.FindContainer("c1")->exited);
  EXPECT_FALSE(book.FindContainer("c2")->exited);
  EXPECT_EQ(book.NameOf({"u"}).ToString(), "ns/u");
  EXPECT_EQ(book.NameOf({"another"}), ObjectName());
}

}  // namespace
}  // namespace devmgr::shim
