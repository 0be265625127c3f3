// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cdi_spec.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "cdi/status_codes.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Map = std::map<std::string, std::string>;

TEST(CdiAnnotationsTest, AreMadeOfPluginAndDevice) {  // BO-070
  const auto made =
      MakeCdiAnnotation("vendor.class", "dev/1", {"v.com/c=1", "v.com/c=2"});
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(made->name, "cdi.k8s.io/vendor.class_dev_1");
  EXPECT_EQ(made->value, "v.com/c=1,v.com/c=2");
}

TEST(CdiAnnotationsTest, HaveKeysOfLimitedLength) {  // BO-071
  Map annotations = {{"a", "b"}};
  const std::string id(61, 'x');
  EXPECT_THAT(AddCdiAnnotation("p", id, {"v/c=1"}, annotations), IsOk());
  const Map before = annotations;
  EXPECT_THAT(AddCdiAnnotation("pq", id, {"v/c=1"}, annotations),
              StatusIs(kInvalid, HasSubstr("too long: 64 characters")));
  EXPECT_EQ(annotations, before);
}

TEST(CdiAnnotationsTest, DoNotReplaceEachOther) {  // BO-072
  Map annotations;
  ASSERT_THAT(AddCdiAnnotation("p", "d", {"v/c=1"}, annotations), IsOk());
  const Map before = annotations;
  EXPECT_THAT(AddCdiAnnotation("p", "d", {"v/c=2"}, annotations),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("'cdi.k8s.io/p_d' is there already")));
  EXPECT_EQ(annotations, before);
}

TEST(CdiAnnotationsTest, HaveKeysThatKubernetesTakes) {
  const std::vector<std::string> names = {"v/c=1"};
  EXPECT_THAT(MakeCdiAnnotation("", "d", names), StatusIs(kInvalid));
  EXPECT_THAT(MakeCdiAnnotation("p", "", names), StatusIs(kInvalid));
  EXPECT_THAT(MakeCdiAnnotation("_p", "d", names),
              StatusIs(kInvalid, HasSubstr("begin and end")));
  EXPECT_THAT(MakeCdiAnnotation("p", "d/", names),
              StatusIs(kInvalid, HasSubstr("begin and end")));
  EXPECT_THAT(MakeCdiAnnotation("a/b", "d", names),
              StatusIs(kInvalid, HasSubstr("may hold only")));
  EXPECT_THAT(MakeCdiAnnotation("p", "d", {"x"}),
              StatusIs(kInvalid, HasSubstr("unqualified device 'x'")));
  EXPECT_EQ(MakeCdiAnnotation("p", "d", {})->value, "");
}

TEST(CdiAnnotationsTest, AreReadAllOrNot) {  // BO-073
  EXPECT_THAT(ParseCdiAnnotations(
                  {{"cdi.k8s.io/a", "v/c=1"}, {"cdi.k8s.io/b", "gpu0"}}),
              StatusIs(kInvalid, HasSubstr("'cdi.k8s.io/b'")));
}

TEST(CdiAnnotationsTest, HaveNoBlanksAndSomeName) {  // BO-074
  EXPECT_THAT(ParseCdiAnnotations({{"cdi.k8s.io/a", "v.com/c=1, v.com/c=2"}}),
              StatusIs(kInvalid));
  EXPECT_THAT(ParseCdiAnnotations({{"cdi.k8s.io/a", ""}}),
              StatusIs(kInvalid, HasSubstr("unqualified")));
}

TEST(CdiAnnotationsTest, AreReadInOrderOfKey) {  // BO-075
  const auto names = ParseCdiAnnotations({{"cdi.k8s.io/b", "v/c=1"},
                                          {"cdi.k8s.io/a", "v/c=3,v/c=2"},
                                          {"CDI.k8s.io/x", "nothing"},
                                          {"cdi.k8s.io", "nothing"},
                                          {"other", "nothing"}});
  ASSERT_THAT(names, IsOk());
  EXPECT_THAT(*names, ElementsAre("v/c=3", "v/c=2", "v/c=1"));
  EXPECT_THAT(*ParseCdiAnnotations({{"a", "b"}}), IsEmpty());
}

TEST(CdiAnnotationsTest, FileNamesCarryTheId) {  // BO-048
  EXPECT_EQ(CdiSpecFileName("v.com/c", "ns/pod/1"), "v.com-c_ns_pod_1");
  EXPECT_EQ(CdiSpecFileName("v.com/c", ""), "v.com-c");
}

}  // namespace
}  // namespace devmgr
