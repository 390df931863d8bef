// The reader of assembly, on code small enough to count by hand.
#include "isa.hpp"

#include <catch2/catch_test_macros.hpp>

using kernel_report::read_isa;

TEST_CASE("code without loops has no hot loop", "[compiler]") {
  const auto isa = read_isa(
      "BB0:\n"
      "\ts_load_dwordx4 s[8:11], s[2:3], null                        ; f4080201 fa000000\n"
      "\ts_cbranch_execz BB2                                         ; bf880028\n"
      "BB1:\n"
      "\tbuffer_load_dwordx4 v[4:7], v0, s[8:11], 0 offen            ; e0381000 80020400\n"
      "\tv_fmac_f32_e32 v8, s5, v1                                   ; 56100205\n"
      "BB2:\n"
      "\ts_endpgm                                                    ; bf810000\n");
  CHECK(isa.all.total == 5);
  CHECK(isa.all.fma == 1);
  CHECK(isa.all.vector == 1);
  CHECK(isa.all.memory == 1);
  CHECK(isa.hot_loop.total == 0);
  CHECK(isa.around_hot_loop.total == 0);
}

TEST_CASE("the hot loop is the innermost one with the most multiply-adds", "[compiler]") {
  const auto isa = read_isa(
      "BB0:\n"
      "\ts_nop 0\n"
      "BB1:\n"
      "\tbuffer_load_dword v1, v0, s[8:11], 0 offen\n"
      "\ts_waitcnt vmcnt(0)\n"
      "BB2:\n"
      "\tds_read_b128 v[4:7], v0\n"
      "\tv_fma_f32 v1, v2, v3, v4\n"
      "\tv_dual_fmac_f32 v1, v2, v3 :: v_dual_mul_f32 v4, v5, v6\n"
      "\ts_cbranch_scc1 BB2\n"
      "BB3:\n"
      "\ts_barrier\n"
      "\ts_branch BB1\n"
      "BB4:\n"
      "\tv_add_f32_e32 v1, v2, v3\n"
      "\ts_cbranch_vccnz BB4\n"
      "\ts_endpgm\n");
  CHECK(isa.all.total == 13);
  CHECK(isa.hot_loop.total == 5);
  CHECK(isa.hot_loop.fma == 2);
  CHECK(isa.hot_loop.lds == 1);
  CHECK(isa.around_hot_loop.total == 4);
  CHECK(isa.around_hot_loop.memory == 1);
  CHECK(isa.around_hot_loop.waits == 1);
}
