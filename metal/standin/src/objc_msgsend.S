// objc_msgSend: finds the method of (receiver's class, selector) and jumps to it with every argument register and the stack as
// the caller left them, so that a method is a plain function with its true signature (mac-and-linux ABI: System V x86-64, AAPCS64).
//
// The saved registers are handed to pond_objc_lookup as a frame, so that it can check the arguments against the method's types.
// Its layout is struct Frame in objc_runtime.h. A message to nil returns 0 in every result register.
	.text
#if defined(__x86_64__)

// pond_objc_lookup(receiver, selector, frame, stret); the frame begins with the six integer registers.
	.macro MSGSEND name, recv, sel, stret
	.globl \name
	.type \name,@function
\name:
	.cfi_startproc
	test \recv, \recv
	jz 9f
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp,-16
	mov %rsp, %rbp
	.cfi_def_cfa_register %rbp
	sub $0xc0, %rsp
	mov %rdi, 0x00(%rsp)
	mov %rsi, 0x08(%rsp)
	mov %rdx, 0x10(%rsp)
	mov %rcx, 0x18(%rsp)
	mov %r8,  0x20(%rsp)
	mov %r9,  0x28(%rsp)
	mov %rax, 0x30(%rsp)
	movaps %xmm0, 0x40(%rsp)
	movaps %xmm1, 0x50(%rsp)
	movaps %xmm2, 0x60(%rsp)
	movaps %xmm3, 0x70(%rsp)
	movaps %xmm4, 0x80(%rsp)
	movaps %xmm5, 0x90(%rsp)
	movaps %xmm6, 0xa0(%rsp)
	movaps %xmm7, 0xb0(%rsp)
	.if \stret
	mov %rsi, %rdi
	mov %rdx, %rsi
	.endif
	mov %rsp, %rdx
	mov $\stret, %ecx
	call pond_objc_lookup@PLT
	mov %rax, %r11
	mov 0x00(%rsp), %rdi
	mov 0x08(%rsp), %rsi
	mov 0x10(%rsp), %rdx
	mov 0x18(%rsp), %rcx
	mov 0x20(%rsp), %r8
	mov 0x28(%rsp), %r9
	mov 0x30(%rsp), %rax
	movaps 0x40(%rsp), %xmm0
	movaps 0x50(%rsp), %xmm1
	movaps 0x60(%rsp), %xmm2
	movaps 0x70(%rsp), %xmm3
	movaps 0x80(%rsp), %xmm4
	movaps 0x90(%rsp), %xmm5
	movaps 0xa0(%rsp), %xmm6
	movaps 0xb0(%rsp), %xmm7
	leave
	.cfi_def_cfa %rsp, 8
	jmp *%r11
9:
	.if \stret
	mov %rdi, %rax
	.else
	xor %eax, %eax
	.endif
	xor %edx, %edx
	pxor %xmm0, %xmm0
	pxor %xmm1, %xmm1
	ret
	.cfi_endproc
	.size \name, .-\name
	.endm

	MSGSEND objc_msgSend, %rdi, %rsi, 0
	MSGSEND objc_msgSend_stret, %rsi, %rdx, 1

// What runs instead of a method when a message is refused: returns 0 in every result register.
	.globl pond_objc_refused
	.hidden pond_objc_refused
	.type pond_objc_refused,@function
pond_objc_refused:
	.cfi_startproc
	xor %eax, %eax
	xor %edx, %edx
	pxor %xmm0, %xmm0
	pxor %xmm1, %xmm1
	ret
	.cfi_endproc
	.size pond_objc_refused, .-pond_objc_refused

	.globl pond_objc_refused_stret
	.hidden pond_objc_refused_stret
	.type pond_objc_refused_stret,@function
pond_objc_refused_stret:
	.cfi_startproc
	mov %rdi, %rax
	ret
	.cfi_endproc
	.size pond_objc_refused_stret, .-pond_objc_refused_stret

#elif defined(__aarch64__)

	.globl objc_msgSend
	.type objc_msgSend,%function
objc_msgSend:
	.cfi_startproc
	cbz x0, 9f
	stp x29, x30, [sp, #-224]!
	.cfi_def_cfa_offset 224
	.cfi_offset 29, -224
	.cfi_offset 30, -216
	mov x29, sp
	stp x0, x1, [sp, #16]
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	stp x6, x7, [sp, #64]
	str x8, [sp, #80]
	stp q0, q1, [sp, #96]
	stp q2, q3, [sp, #128]
	stp q4, q5, [sp, #160]
	stp q6, q7, [sp, #192]
	add x2, sp, #16
	mov w3, #0
	bl pond_objc_lookup
	mov x16, x0
	ldp x0, x1, [sp, #16]
	ldp x2, x3, [sp, #32]
	ldp x4, x5, [sp, #48]
	ldp x6, x7, [sp, #64]
	ldr x8, [sp, #80]
	ldp q0, q1, [sp, #96]
	ldp q2, q3, [sp, #128]
	ldp q4, q5, [sp, #160]
	ldp q6, q7, [sp, #192]
	ldp x29, x30, [sp], #224
	.cfi_def_cfa_offset 0
	.cfi_restore 29
	.cfi_restore 30
	br x16
9:	mov x0, #0
	mov x1, #0
	movi d0, #0
	movi d1, #0
	ret
	.cfi_endproc
	.size objc_msgSend, .-objc_msgSend

	.globl pond_objc_refused
	.hidden pond_objc_refused
	.type pond_objc_refused,%function
pond_objc_refused:
	mov x0, #0
	mov x1, #0
	movi d0, #0
	movi d1, #0
	ret
	.size pond_objc_refused, .-pond_objc_refused

#else
#error "the stand-in runs on x86-64 and aarch64"
#endif
	.section .note.GNU-stack,"",%progbits
