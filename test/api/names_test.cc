// SPDX-License-Identifier: Apache-2.0
#include "api/names.h"

#include <devmgr/manifests.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "api/quote.h"
#include "api/semver.h"

namespace devmgr::api {
namespace {

using ::testing::HasSubstr;

std::string Repeat(std::size_t count) { return std::string(count, 'a'); }

TEST(Names, ChecksLabels) {
  for (const std::string& name :
       {std::string("a"), std::string("0"), std::string("a-b"), Repeat(63)}) {
    EXPECT_EQ(CheckLabel(name), "");
  }
  for (const std::string& name :
       {std::string(), std::string("A"), std::string("-a"), std::string("a-"),
        std::string("a.b"), std::string("a_b"), std::string("a b"),
        std::string("\xC3\xA9"), std::string("a\0b", 3), Repeat(64)}) {
    EXPECT_NE(CheckLabel(name), "") << name;
  }
  EXPECT_THAT(CheckLabel("A"), HasSubstr("'A'"));
  EXPECT_THAT(CheckLabel(Repeat(64)), HasSubstr("64"));
}

TEST(Names, ChecksSubdomains) {
  // A part may be longer than a label: upstream bounds the whole only.
  for (const std::string& name :
       {std::string("a"), std::string("a.b-c.0"), Repeat(64), Repeat(253)}) {
    EXPECT_EQ(CheckSubdomain(name), "");
  }
  for (const std::string& name :
       {std::string(), std::string("."), std::string("a."), std::string(".a"),
        std::string("a..b"), std::string("a.-b"), std::string("a-.b"),
        std::string("A.b"), std::string("a/b"), Repeat(254)}) {
    EXPECT_NE(CheckSubdomain(name), "") << name;
  }
}

TEST(Names, ChecksQualifiedNames) {
  for (const std::string& name :
       {std::string("a"), std::string("A_b.c-D"), std::string("x.y/A"),
        "a/" + Repeat(63), Repeat(253) + "/a"}) {
    EXPECT_EQ(CheckQualifiedName(name), "");
  }
  for (const std::string& name :
       {std::string(), std::string("/a"), std::string("a/"),
        std::string("a/b/c"), std::string("X.y/a"), std::string("a/-b"),
        std::string("a/b_"), "a/" + Repeat(64), Repeat(254) + "/a"}) {
    EXPECT_NE(CheckQualifiedName(name), "") << name;
  }
}

TEST(Names, ChecksDriverNamesWithUpstreamsWords) {
  EXPECT_EQ(CheckDriverName("gpu.example.com"), "");
  EXPECT_EQ(CheckDriverName(Repeat(63)), "");
  EXPECT_THAT(CheckDriverName(""), HasSubstr("Required value"));
  EXPECT_THAT(CheckDriverName(Repeat(64)), HasSubstr("Too long"));
  EXPECT_THAT(CheckDriverName("GPU.example.com"),
              HasSubstr("invalid DRA driver name"));
  EXPECT_THAT(CheckDriverName("a/b"), HasSubstr("invalid DRA driver name"));
}

TEST(Names, ChecksPoolNames) {
  for (const std::string& name :
       {std::string("a"), std::string("a.b/c/d.e"), Repeat(253)}) {
    EXPECT_EQ(CheckPoolName(name), "");
  }
  for (const std::string& name :
       {std::string(), std::string("/"), std::string("a/"), std::string("/a"),
        std::string("a//b"), std::string("a/B"), Repeat(254)}) {
    EXPECT_NE(CheckPoolName(name), "") << name;
  }
}

TEST(Names, KnowsExtendedResources) {
  for (const std::string& name :
       {std::string("nvidia.com/gpu"), std::string("test.device/x"),
        Repeat(244) + "/x"}) {
    EXPECT_TRUE(IsExtendedResourceName(name)) << name;
    EXPECT_TRUE(CanBeDraExtendedResource(name)) << name;
  }
  for (const std::string& name :
       {std::string("gpu"), std::string(), std::string("kubernetes.io/gpu"),
        std::string("gpu.kubernetes.io/a"), std::string("requests.a.com/gpu"),
        std::string("example.com/a/b"), std::string("Example.com/gpu"),
        std::string("example.com/-x"), std::string("cpu"),
        Repeat(245) + "/x"}) {
    EXPECT_FALSE(IsExtendedResourceName(name)) << name;
    EXPECT_FALSE(CanBeDraExtendedResource(name)) << name;
  }
}

TEST(Names, LetsImplicitNamesBeExtendedResources) {
  const std::string prefix(kImplicitResourcePrefix);
  EXPECT_TRUE(CanBeDraExtendedResource(prefix + "gpu.example.com"));
  EXPECT_FALSE(IsExtendedResourceName(prefix + "gpu.example.com"));
  EXPECT_FALSE(CanBeDraExtendedResource(prefix));
  EXPECT_FALSE(CanBeDraExtendedResource(prefix + "a/b"));
  EXPECT_FALSE(CanBeDraExtendedResource(prefix + Repeat(64)));
}

TEST(Names, DerivesTheImplicitNameOfAClass) {
  EXPECT_EQ(ImplicitResourceName("gpu.example.com"),
            "deviceclass.resource.kubernetes.io/gpu.example.com");
  EXPECT_EQ(ImplicitResourceName(Repeat(63)),
            "deviceclass.resource.kubernetes.io/" + Repeat(63));
  EXPECT_EQ(ImplicitResourceName(Repeat(64)), "");
  EXPECT_EQ(ImplicitResourceName(""), "");
}

TEST(Names, CutsAlternativesOffRequests) {
  EXPECT_EQ(BaseRequestName("gpu"), "gpu");
  EXPECT_EQ(BaseRequestName("gpu/large"), "gpu");
  EXPECT_EQ(BaseRequestName("gpu/large/x"), "gpu");
  EXPECT_EQ(BaseRequestName("/large"), "");
  EXPECT_EQ(BaseRequestName(""), "");
}

TEST(Quoting, ShowsWhatCannotBePrinted) {
  EXPECT_EQ(Quoted("a b"), "'a b'");
  EXPECT_EQ(Quoted("caf\xC3\xA9"), "'caf\xC3\xA9'");
  EXPECT_EQ(Quoted(std::string_view("\n\0\x7F", 3)), "'\\x0a\\x00\\x7f'");
  EXPECT_EQ(Quoted("\xFF\xC3"), "'\\xff\\xc3'");
  EXPECT_EQ(Quoted(Repeat(100), 3), "'aaa...' (100 bytes)");
  // Nothing is cut in the middle of a character.
  EXPECT_EQ(Quoted("\xC3\xA9\xC3\xA9", 1), "'\xC3\xA9...' (4 bytes)");
}

TEST(Utf8, FindsTheFirstInvalidByte) {
  constexpr auto kNone = std::string_view::npos;
  EXPECT_EQ(FindInvalidUtf8(""), kNone);
  EXPECT_EQ(FindInvalidUtf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"), kNone);
  EXPECT_EQ(FindInvalidUtf8("a\x80"), 1u);
  EXPECT_EQ(FindInvalidUtf8("\xC0\xAF"), 0u) << "overlong";
  EXPECT_EQ(FindInvalidUtf8("\xE0\x80\x80"), 0u) << "overlong";
  EXPECT_EQ(FindInvalidUtf8("\xED\xA0\x80"), 0u) << "surrogate";
  EXPECT_EQ(FindInvalidUtf8("\xF4\x90\x80\x80"), 0u) << "beyond Unicode";
  EXPECT_EQ(FindInvalidUtf8("ab\xE2\x82"), 2u) << "cut short";
}

TEST(SemanticVersion, IsStrict) {
  for (const char* text : {"0.0.0", "1.2.3", "10.20.30", "1.0.0-alpha.1",
                           "1.0.0-0a", "1.0.0+001", "1.0.0-x-y-z.--+a.b-c"}) {
    EXPECT_TRUE(IsSemanticVersion(text)) << text;
  }
  for (const char* text :
       {"", "1", "1.2", "1.2.3.4", "01.2.3", "1.2.03", "v1.2.3", "1.2.3-",
        "1.2.3-01", "1.2.3+", "1.2.3-a..b", "1.2.3+a_b", "1..3", "-1.2.3"}) {
    EXPECT_FALSE(IsSemanticVersion(text)) << text;
  }
}

}  // namespace
}  // namespace devmgr::api
