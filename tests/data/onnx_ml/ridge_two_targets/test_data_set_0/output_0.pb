BvariableJ`…à'B	š$BžÂAZ~šB˜§uBÅ·ÇBáÆ:Â±µBˆ²AU$B
 ÄÁ8]åAn­¿¶!SBôgÀAõÈBsàÍA4Ð BÞEÃHGUB*ìêÂîS^BcÒ'ÂXÖ{A