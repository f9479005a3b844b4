BvariableJ0Ø,&A∫7@÷É÷@¿Ì8A
`Auı+A?FAYJAΩ’AÑà+@îﬂ@É‹2A