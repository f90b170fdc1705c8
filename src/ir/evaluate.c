/* Integer operations on constants. */
#include "ir/ir.h"

bool ir_evaluate_integer(ir_op op, ir_type type, uint64_t a, uint64_t b, uint64_t *out) {
    unsigned width = ir_type_bits(type);
    int64_t sa = ir_sign_extend(a, width), sb = ir_sign_extend(b, width),
            min = ir_sign_extend(1ull << (width - 1), width);
    switch (op) {
    case IR_ADD: *out = a + b; return true;
    case IR_SUB: *out = a - b; return true;
    case IR_MUL: *out = a * b; return true;
    case IR_MULHI_U: *out = (uint64_t)(((__uint128_t)a * b) >> width); return true;
    case IR_MULHI_S: *out = (uint64_t)(((__int128_t)sa * sb) >> width); return true;
    case IR_DIV_S:
        *out = sb == 0 ? 0 : (sa == min && sb == -1) ? a : (uint64_t)(sa / sb);
        return true;
    case IR_DIV_U: *out = b == 0 ? 0 : a / b; return true;
    case IR_REM_S: *out = sb == 0 || sb == -1 ? 0 : (uint64_t)(sa % sb); return true;
    case IR_REM_U: *out = b == 0 ? 0 : a % b; return true;
    case IR_AND: *out = a & b; return true;
    case IR_OR: *out = a | b; return true;
    case IR_XOR: *out = a ^ b; return true;
    case IR_NOT: *out = ~a; return true;
    case IR_SHL: *out = b >= width ? 0 : a << b; return true;
    case IR_SHR_U: *out = b >= width ? 0 : a >> b; return true;
    case IR_SHR_S: *out = (uint64_t)(sa >> (b >= width ? 63 : b)); return true;
    case IR_MIN_S: *out = sa < sb ? a : b; return true;
    case IR_MAX_S: *out = sa > sb ? a : b; return true;
    case IR_MIN_U: *out = a < b ? a : b; return true;
    case IR_MAX_U: *out = a > b ? a : b; return true;
    case IR_ABS: *out = sa < 0 ? 0 - a : a; return true;
    case IR_POPC: *out = (uint64_t)__builtin_popcountll(a); return true;
    case IR_CLZ: *out = a ? (uint64_t)__builtin_clzll(a) - (64 - width) : width; return true;
    case IR_CTZ: *out = a ? (uint64_t)__builtin_ctzll(a) : width; return true;
    case IR_EQ: *out = a == b; return true;
    case IR_NE: *out = a != b; return true;
    case IR_LT_S: *out = sa < sb; return true;
    case IR_LE_S: *out = sa <= sb; return true;
    case IR_LT_U: *out = a < b; return true;
    case IR_LE_U: *out = a <= b; return true;
    case IR_TRUNC:
    case IR_ZEXT: *out = a; return true;
    case IR_SEXT: *out = (uint64_t)sa; return true;
    default: return false;
    }
}
