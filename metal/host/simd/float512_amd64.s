#include "textflag.h"

// Float work on vectors of 16 lanes. Lengths n are multiples of 16 unless told.

// e^x for x in Z0, result in Z0; Z1, Z2 are used. x = n·ln2 + r, |r| <= ln2/2, e^r by its series to r^6 (relative error under 2e-7),
// 2^n by the exponent. Below -87.3 the result is denormal or zero, as it should be; NaN stays NaN.
// Constants: Z24 log2(e), Z25 ln2 high, Z26 ln2 low, Z27.. are loaded on use.
DATA expConst<>+0(SB)/4, $0x3fb8aa3b // log2 e
DATA expConst<>+4(SB)/4, $0x3f317200 // ln 2, high part
DATA expConst<>+8(SB)/4, $0x35bfbe8e // ln 2, the rest
DATA expConst<>+12(SB)/4, $0x3ab60b61 // 1/720
DATA expConst<>+16(SB)/4, $0x3c088889 // 1/120
DATA expConst<>+20(SB)/4, $0x3d2aaaab // 1/24
DATA expConst<>+24(SB)/4, $0x3e2aaaab // 1/6
DATA expConst<>+28(SB)/4, $0x3f000000 // 1/2
DATA expConst<>+32(SB)/4, $0x3f800000 // 1
DATA expConst<>+36(SB)/4, $0xc2d00000 // -104
DATA expConst<>+40(SB)/4, $0x42b17218 // 88.72
GLOBL expConst<>(SB), RODATA|NOPTR, $44

#define EXP_CONSTANTS \
	VBROADCASTSS expConst<>+0(SB), Z21 \
	VBROADCASTSS expConst<>+4(SB), Z22 \
	VBROADCASTSS expConst<>+8(SB), Z23 \
	VBROADCASTSS expConst<>+12(SB), Z24 \
	VBROADCASTSS expConst<>+16(SB), Z25 \
	VBROADCASTSS expConst<>+20(SB), Z26 \
	VBROADCASTSS expConst<>+24(SB), Z27 \
	VBROADCASTSS expConst<>+28(SB), Z28 \
	VBROADCASTSS expConst<>+32(SB), Z29 \
	VBROADCASTSS expConst<>+36(SB), Z30 \
	VBROADCASTSS expConst<>+40(SB), Z31

#define EXP \
	VMAXPS Z0, Z30, Z0 \
	VMINPS Z0, Z31, Z0 \
	VMULPS Z21, Z0, Z1 \
	VRNDSCALEPS $0, Z1, Z1 \
	VFNMADD231PS Z22, Z1, Z0 \
	VFNMADD231PS Z23, Z1, Z0 \
	VMOVAPS Z24, Z2 \
	VFMADD213PS Z25, Z0, Z2 \
	VFMADD213PS Z26, Z0, Z2 \
	VFMADD213PS Z27, Z0, Z2 \
	VFMADD213PS Z28, Z0, Z2 \
	VFMADD213PS Z29, Z0, Z2 \
	VFMADD213PS Z29, Z0, Z2 \
	VSCALEFPS Z1, Z2, Z0

// Z0 = x·sigmoid(x) for x in Z3; or sigmoid alone.
#define SIGMOID \
	VPXORD Z0, Z0, Z0 \
	VSUBPS Z3, Z0, Z0 \
	EXP \
	VADDPS Z29, Z0, Z0 \
	VDIVPS Z0, Z29, Z0

// The sum of the lanes of Z into its lowest one; Y and X are the same register, Z1 is used.
#define SUM16(Z, Y, X) \
	VEXTRACTF64X4 $1, Z, Y1 \
	VADDPS Y1, Y, Y \
	VEXTRACTF128 $1, Y, X1 \
	VADDPS X1, X, X \
	VPERMILPD $1, X, X1 \
	VADDPS X1, X, X \
	VMOVSHDUP X, X1 \
	VADDSS X1, X, X

// func sumSquaresAVX512(x *float32, n int) float32
TEXT ·sumSquaresAVX512(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	VPXORD Z0, Z0, Z0
	VPXORD Z2, Z2, Z2
loop:
	VMOVUPS (SI), Z3
	VFMADD231PS Z3, Z3, Z0
	ADDQ $64, SI
	SUBQ $16, CX
	JLE done
	VMOVUPS (SI), Z4
	VFMADD231PS Z4, Z4, Z2
	ADDQ $64, SI
	SUBQ $16, CX
	JG loop
done:
	VADDPS Z2, Z0, Z0
	SUM16(Z0, Y0, X0)
	VMOVSS X0, ret+16(FP)
	VZEROUPPER
	RET

// func normAVX512(dst, x *float32, w *byte, scale float32, n int)
//
// dst = x*scale*w, w in bf16.
TEXT ·normAVX512(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ w+16(FP), R8
	VBROADCASTSS scale+24(FP), Z1
	MOVQ n+32(FP), CX
loop:
	VPMOVZXWD (R8), Z2
	VPSLLD $16, Z2, Z2
	VMULPS (SI), Z1, Z0
	VMULPS Z2, Z0, Z0
	VMOVUPS Z0, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $32, R8
	SUBQ $16, CX
	JG loop
	VZEROUPPER
	RET

// func scaleAVX512(dst, x *float32, scale float32, n int)
TEXT ·scaleAVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	VBROADCASTSS scale+16(FP), Z1
	MOVQ n+24(FP), CX
loop:
	VMULPS (SI), Z1, Z0
	VMOVUPS Z0, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JG loop
	VZEROUPPER
	RET

// func addScaledAVX512(dst, x *float32, scale float32, n int)
//
// dst += scale*x.
TEXT ·addScaledAVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	VBROADCASTSS scale+16(FP), Z1
	MOVQ n+24(FP), CX
loop:
	VMOVUPS (DI), Z0
	VFMADD231PS (SI), Z1, Z0
	VMOVUPS Z0, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JG loop
	VZEROUPPER
	RET

// func siluMulAVX512(dst, gate, up *float32, n int)
TEXT ·siluMulAVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ gate+8(FP), SI
	MOVQ up+16(FP), R8
	MOVQ n+24(FP), CX
	EXP_CONSTANTS
loop:
	VMOVUPS (SI), Z3
	SIGMOID
	VMULPS Z3, Z0, Z0
	VMULPS (R8), Z0, Z0
	VMOVUPS Z0, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $64, R8
	SUBQ $16, CX
	JG loop
	VZEROUPPER
	RET

// func mulSigmoidAVX512(dst, x, gate *float32, scale float32, n int)
//
// dst = x*scale*sigmoid(gate).
TEXT ·mulSigmoidAVX512(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ gate+16(FP), R8
	VBROADCASTSS scale+24(FP), Z4
	MOVQ n+32(FP), CX
	EXP_CONSTANTS
loop:
	VMOVUPS (R8), Z3
	SIGMOID
	VMULPS (SI), Z0, Z0
	VMULPS Z4, Z0, Z0
	VMOVUPS Z0, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $64, R8
	SUBQ $16, CX
	JG loop
	VZEROUPPER
	RET

// func expSumAVX512(x *float32, top float32, n int) float32
//
// x = e^(x-top); returns the sum.
TEXT ·expSumAVX512(SB), NOSPLIT, $0-28
	MOVQ x+0(FP), SI
	VBROADCASTSS top+8(FP), Z4
	MOVQ n+16(FP), CX
	EXP_CONSTANTS
	VPXORD Z5, Z5, Z5
loop:
	VMOVUPS (SI), Z0
	VSUBPS Z4, Z0, Z0
	EXP
	VMOVUPS Z0, (SI)
	VADDPS Z0, Z5, Z5
	ADDQ $64, SI
	SUBQ $16, CX
	JG loop
	SUM16(Z5, Y5, X5)
	VMOVSS X5, ret+24(FP)
	VZEROUPPER
	RET

// func maxAVX512(x *float32, n int) float32
TEXT ·maxAVX512(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	VMOVUPS (SI), Z0
loop:
	VMAXPS (SI), Z0, Z0
	ADDQ $64, SI
	SUBQ $16, CX
	JG loop
	VEXTRACTF64X4 $1, Z0, Y1
	VMAXPS Y1, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VMAXPS X1, X0, X0
	VPERMILPD $1, X0, X1
	VMAXPS X1, X0, X0
	VMOVSHDUP X0, X1
	VMAXSS X1, X0, X0
	VMOVSS X0, ret+16(FP)
	VZEROUPPER
	RET

// func dotRowsAVX512(dst, x, rows *float32, stride, n, count int)
//
// dst[i] = x · row i for count rows, stride bytes apart, four at a time where there are four: one load of x for each.
TEXT ·dotRowsAVX512(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), R8
	MOVQ rows+16(FP), SI
	MOVQ stride+24(FP), R9
	MOVQ n+32(FP), R10
	MOVQ count+40(FP), R11
	LEAQ (R9)(R9*2), R12
four:
	CMPQ R11, $4
	JLT one
	VPXORD Z4, Z4, Z4
	VPXORD Z5, Z5, Z5
	VPXORD Z6, Z6, Z6
	VPXORD Z7, Z7, Z7
	MOVQ R8, DX
	MOVQ SI, BX
	MOVQ R10, CX
fourLoop:
	VMOVUPS (DX), Z2
	VFMADD231PS (BX), Z2, Z4
	VFMADD231PS (BX)(R9*1), Z2, Z5
	VFMADD231PS (BX)(R9*2), Z2, Z6
	VFMADD231PS (BX)(R12*1), Z2, Z7
	ADDQ $64, DX
	ADDQ $64, BX
	SUBQ $16, CX
	JG fourLoop
	// Lanes: first within 128 bits, 4 sums at once.
	VUNPCKLPS Z5, Z4, Z0
	VUNPCKHPS Z5, Z4, Z1
	VADDPS Z1, Z0, Z0 // 4 5 4 5
	VUNPCKLPS Z7, Z6, Z1
	VUNPCKHPS Z7, Z6, Z2
	VADDPS Z2, Z1, Z1 // 6 7 6 7
	VUNPCKLPD Z1, Z0, Z2
	VUNPCKHPD Z1, Z0, Z3
	VADDPS Z3, Z2, Z0 // 4 5 6 7
	VEXTRACTF64X4 $1, Z0, Y1
	VADDPS Y1, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS X1, X0, X0
	VMOVUPS X0, (DI)
	ADDQ $16, DI
	LEAQ (SI)(R9*4), SI
	SUBQ $4, R11
	JMP four
one:
	TESTQ R11, R11
	JZ done
	VPXORD Z0, Z0, Z0
	MOVQ R8, DX
	MOVQ SI, BX
	MOVQ R10, CX
oneLoop:
	VMOVUPS (DX), Z2
	VFMADD231PS (BX), Z2, Z0
	ADDQ $64, DX
	ADDQ $64, BX
	SUBQ $16, CX
	JG oneLoop
	SUM16(Z0, Y0, X0)
	VMOVSS X0, (DI)
	ADDQ $4, DI
	ADDQ R9, SI
	DECQ R11
	JMP one
done:
	VZEROUPPER
	RET

// func addRowsAVX512(dst, weights, rows *float32, stride, n, count int)
//
// dst += Σ weights[i]·row i over count rows, stride bytes apart, in order; n a multiple of 128, or of 16 with a slower way for the rest.
TEXT ·addRowsAVX512(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ weights+8(FP), R8
	MOVQ rows+16(FP), SI
	MOVQ stride+24(FP), R9
	MOVQ n+32(FP), R10
	MOVQ count+40(FP), R11
wide:
	CMPQ R10, $128
	JLT narrow
	VMOVUPS (DI), Z0
	VMOVUPS 64(DI), Z1
	VMOVUPS 128(DI), Z2
	VMOVUPS 192(DI), Z3
	VMOVUPS 256(DI), Z4
	VMOVUPS 320(DI), Z5
	VMOVUPS 384(DI), Z6
	VMOVUPS 448(DI), Z7
	MOVQ R8, DX
	MOVQ SI, BX
	MOVQ R11, CX
wideRow:
	VBROADCASTSS (DX), Z8
	VFMADD231PS (BX), Z8, Z0
	VFMADD231PS 64(BX), Z8, Z1
	VFMADD231PS 128(BX), Z8, Z2
	VFMADD231PS 192(BX), Z8, Z3
	VFMADD231PS 256(BX), Z8, Z4
	VFMADD231PS 320(BX), Z8, Z5
	VFMADD231PS 384(BX), Z8, Z6
	VFMADD231PS 448(BX), Z8, Z7
	ADDQ $4, DX
	ADDQ R9, BX
	DECQ CX
	JNZ wideRow
	VMOVUPS Z0, (DI)
	VMOVUPS Z1, 64(DI)
	VMOVUPS Z2, 128(DI)
	VMOVUPS Z3, 192(DI)
	VMOVUPS Z4, 256(DI)
	VMOVUPS Z5, 320(DI)
	VMOVUPS Z6, 384(DI)
	VMOVUPS Z7, 448(DI)
	ADDQ $512, DI
	ADDQ $512, SI
	SUBQ $128, R10
	JMP wide
narrow:
	TESTQ R10, R10
	JZ done
	VMOVUPS (DI), Z0
	MOVQ R8, DX
	MOVQ SI, BX
	MOVQ R11, CX
narrowRow:
	VBROADCASTSS (DX), Z8
	VFMADD231PS (BX), Z8, Z0
	ADDQ $4, DX
	ADDQ R9, BX
	DECQ CX
	JNZ narrowRow
	VMOVUPS Z0, (DI)
	ADDQ $64, DI
	ADDQ $64, SI
	SUBQ $16, R10
	JMP narrow
done:
	VZEROUPPER
	RET

// even and odd dwords of two registers
DATA evens<>+0(SB)/8, $0x0000000200000000
DATA evens<>+8(SB)/8, $0x0000000600000004
DATA evens<>+16(SB)/8, $0x0000000a00000008
DATA evens<>+24(SB)/8, $0x0000000e0000000c
DATA evens<>+32(SB)/8, $0x0000001200000010
DATA evens<>+40(SB)/8, $0x0000001600000014
DATA evens<>+48(SB)/8, $0x0000001a00000018
DATA evens<>+56(SB)/8, $0x0000001e0000001c
GLOBL evens<>(SB), RODATA|NOPTR, $64
DATA highWord<>+0(SB)/4, $0xffff0000
GLOBL highWord<>(SB), RODATA|NOPTR, $4
DATA oneDword<>+0(SB)/4, $1
GLOBL oneDword<>(SB), RODATA|NOPTR, $4

// func convSiluAVX512(dst *float32, taps *byte, u0, u1, u2, u3 *float32, n int)
//
// dst = silu(Σ taps[j]·uj), taps [n, 4] in bf16: two dwords a channel, taps 0 and 1, 2 and 3.
TEXT ·convSiluAVX512(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), DI
	MOVQ taps+8(FP), SI
	MOVQ u0+16(FP), R8
	MOVQ u1+24(FP), R9
	MOVQ u2+32(FP), R10
	MOVQ u3+40(FP), R11
	MOVQ n+48(FP), CX
	EXP_CONSTANTS
	VMOVDQU64 evens<>(SB), Z16
	VPBROADCASTD oneDword<>(SB), Z17
	VPADDD Z16, Z17, Z17
	VPBROADCASTD highWord<>(SB), Z18
	XORQ AX, AX
loop:
	VMOVDQU64 (SI), Z4
	VMOVDQU64 64(SI), Z5
	VMOVDQA64 Z16, Z6
	VPERMI2D Z5, Z4, Z6
	VMOVDQA64 Z17, Z7
	VPERMI2D Z5, Z4, Z7
	VPSLLD $16, Z6, Z8
	VPANDD Z18, Z6, Z6
	VPSLLD $16, Z7, Z9
	VPANDD Z18, Z7, Z7
	VMULPS (R8)(AX*1), Z8, Z3
	VFMADD231PS (R9)(AX*1), Z6, Z3
	VFMADD231PS (R10)(AX*1), Z9, Z3
	VFMADD231PS (R11)(AX*1), Z7, Z3
	SIGMOID
	VMULPS Z3, Z0, Z0
	VMOVUPS Z0, (DI)(AX*1)
	ADDQ $128, SI
	ADDQ $64, AX
	SUBQ $16, CX
	JG loop
	VZEROUPPER
	RET
